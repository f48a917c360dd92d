#include "app/data.h"
#include "app/main_verb.h"
#include "app/verbs.h"

namespace mindpipe {

int data(const Arguments& arguments) {
  const DataArguments& d = arguments.data;
  if (d.action == "import") print(import_text(d.input, d.output, d.jsonl ? "jsonl" : "auto", d.key));
  else if (d.action == "inspect") print(inspect(d.input));
  else print(synthesize(d.input, d.output, d.documents, d.seed));
  return 0;
}

}  // namespace mindpipe
