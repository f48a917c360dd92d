#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

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
#include "runtime/tensor_norms.h"

namespace mindpipe {
namespace {

constexpr int columns = 72, rows = 10;

void write_picture(const std::string& path, const std::string& picture) {
  NewFile file(path);
  file.write(picture.data(), picture.size());
  file.commit();
}

/// The name of the arithmetic, which the first line of each start has, and where another one begins; empty in
/// runs from before there were any.
std::string arithmetic_line(const std::string& run) {
  std::string line, newest;
  read_metrics(run, [&](const JsonMembers& members) {
    const auto name = members.texts.find("arithmetic");
    if (name == members.texts.end() || name->second == newest) return;
    newest = name->second;
    const auto step = members.integers.find("step");
    const std::int64_t number = step == members.integers.end() ? 0 : step->second;
    line += line.empty() ? "arithmetic: " + newest : fmt::format("; from step {} on {}", number, newest);
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

/// The norms of the layers at the newest step that was measured, those with the largest gradients first;
/// empty where none was.
std::string text_of_norms(const std::string& run) {
  std::int64_t step = 0;
  std::vector<LayerNorms> layers;
  read_metrics(run, [&](const JsonMembers& line) {
    const auto names = line.texts.find("layers");
    const auto gradients = line.lists.find("gradient_norms"), weights = line.lists.find("weight_norms");
    if (names == line.texts.end() || gradients == line.lists.end() || weights == line.lists.end()) return;
    std::istringstream words(names->second);
    layers.clear();
    for (LayerNorms layer; words >> layer.layer;)
      if (const std::size_t at = layers.size();
          at < std::min(gradients->second.size(), weights->second.size()))
        layers.push_back({layer.layer, gradients->second[at], weights->second[at]});
      else break;
    if (const auto found = line.integers.find("step"); found != line.integers.end()) step = found->second;
  });
  if (layers.empty()) return "";
  // What is no number comes first: a spike has its name there.
  const auto size = [](double norm) {
    return std::isfinite(norm) ? norm : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(layers.begin(), layers.end(), [&](const LayerNorms& a, const LayerNorms& b) {
    return size(a.gradient) > size(b.gradient);
  });
  constexpr std::size_t most = 12;
  std::string text = fmt::format("\nnorms at step {}, largest gradients first\n  {:<20}  {:>10}  {:>10}\n",
                                 step, "layer", "gradient", "weights");
  for (std::size_t i = 0; i < std::min(most, layers.size()); ++i)
    text += fmt::format("  {:<20}  {:>10.4g}  {:>10.4g}\n", layers[i].layer, layers[i].gradient,
                        layers[i].weights);
  if (layers.size() > most) text += fmt::format("  and {} more\n", layers.size() - most);
  return text;
}

}  // namespace

int report(const Arguments& arguments, const Config&) {
  if (launch().rank != 0) return 0;
  const std::string& run = arguments.report.run;
  const LossCurve curve = read_losses(run);
  print(fmt::format("{}: training loss of {} steps, {} of computing\n\n{}", run, curve.training.size(),
                    human_seconds(curve.seconds), drawn_as_text(curve, columns, rows, is_utf8_locale())));
  if (const std::string name = arithmetic_line(run); !name.empty()) print("\n" + name + "\n");
  print(text_of_norms(run));
  if (const std::string energy = energy_line(run); !energy.empty()) print("\n" + energy + "\n");
  if (const std::string& svg = arguments.report.svg; !svg.empty()) {
    write_picture(svg, drawn_as_svg(curve, std::filesystem::path(run).lexically_normal().string()));
    info("picture: {}", svg);
  }
  return 0;
}

}  // namespace mindpipe
