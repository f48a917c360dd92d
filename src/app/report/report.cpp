#include <filesystem>

#include "app/report/loss_curve.h"
#include "app/run/json_read.h"
#include "app/run/run_directory.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "core/input_file.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/terminal.h"
#include "core/text.h"
#include "io/file.h"

namespace mindpipe {
namespace {

constexpr int columns = 72, rows = 10;

void write_picture(const std::string& path, const std::string& picture) {
  NewFile file(path);
  file.write(picture.data(), picture.size());
  file.commit();
}

/// The name of the arithmetic, which the line of the first step has; empty in runs from before there were
/// any.
std::string arithmetic_line(const std::string& run) {
  std::string line;
  read_metrics(run, [&](const JsonMembers& members) {
    const auto name = members.texts.find("arithmetic");
    if (line.empty() && name != members.texts.end()) line = "arithmetic: " + name->second;
  });
  return line;
}

/// What energy.json of a run says in a line; nothing where there is none.
std::string energy_line(const std::string& run) {
  const std::optional<JsonMembers> members =
      read_json(read_text_if_there(run + "/energy.json", largest_status).value_or(""));
  if (!members) return "";
  const auto found = members->texts.find("summary");
  return found == members->texts.end() ? "" : found->second;
}

}  // namespace

int report(const Arguments& arguments, const Config&) {
  if (launch().rank != 0) return 0;
  const std::string& run = arguments.report.run;
  const LossCurve curve = read_losses(run);
  print(fmt::format("{}: training loss of {} steps, {} of computing\n\n{}", run, curve.training.size(),
                    human_seconds(curve.seconds), drawn_as_text(curve, columns, rows, is_utf8_locale())));
  if (const std::string name = arithmetic_line(run); !name.empty()) print("\n" + name + "\n");
  if (const std::string energy = energy_line(run); !energy.empty()) print("\n" + energy + "\n");
  if (const std::string& svg = arguments.report.svg; !svg.empty()) {
    write_picture(svg, drawn_as_svg(curve, std::filesystem::path(run).lexically_normal().string()));
    info("picture: {}", svg);
  }
  return 0;
}

}  // namespace mindpipe
