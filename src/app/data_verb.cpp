#include "app/data.h"
#include "app/main_verb.h"
#include "app/verbs.h"

namespace mindpipe {

int data(const Arguments& arguments, const Config&) {
  const DataArguments& d = arguments.data;
  if (d.action == "import") print(import_text(d.input, d.output, d.format, d.key, d.end_of_text) + "\n");
  else if (d.action == "inspect") print(inspect(d.input, d.show));
  else print(synthesize(d.input, d.output, d.documents, d.seed) + "\n");
  return 0;
}

}  // namespace mindpipe
