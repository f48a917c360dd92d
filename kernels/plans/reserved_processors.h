#pragma once

namespace mindpipe {

/// Multiprocessors that products are computed on where `reserved` of a GPU's are left to messages; 0: nobody
/// limits them. A reserve of all of them is refused.
int processors_left(int of_gpu, int reserved);

}  // namespace mindpipe
