#include "config/device_file.h"

#include "config/section.h"
#include "config/settings.h"

namespace mindpipe {
namespace {

const std::vector<std::string> names{"like",   "flops_f32", "flops_bf16",       "bytes",
                                     "launch", "half_rate", "attention_scores", "links"};
const std::vector<std::string> names_of_links{
    "ranks_per_node", "latency", "rate", "latency_between_nodes", "rate_between_nodes", "copies"};

template <class T>
void read_if_there(T& member, const Section& section, const char* name, const Range& range) {
  if (const Node* node = section.find(name)) Setting(section.key_of(name), &member, "", range).read(*node);
}

}  // namespace

bool is_device_file(const std::string& description) { return description.ends_with(".yaml"); }

DeviceFile read_device_file(const std::string& file) try {
  constexpr Range a_rate{0, 1e30, true}, a_time{0, 10}, an_extent{0, 1e9}, a_factor{0, 1e3},
      a_count{1, 1 << 20};
  const Node root = read_document(file);
  const Section section(root, "", names, "a device");
  DeviceFile device;
  const char* like = "the bundled device that it is like (h200, h100, a100, core)";
  Setting("like", &device.like, like).read(section.at("like", like));
  read_if_there(device.flops_f32, section, "flops_f32", a_rate);
  read_if_there(device.flops_bf16, section, "flops_bf16", a_rate);
  read_if_there(device.bytes, section, "bytes", a_rate);
  read_if_there(device.launch, section, "launch", a_time);
  read_if_there(device.half_rate, section, "half_rate", an_extent);
  read_if_there(device.attention_scores, section, "attention_scores", a_factor);
  if (const Node* node = section.find("links")) {
    const Section links(*node, "links", names_of_links, "links");
    read_if_there(device.ranks_per_node, links, "ranks_per_node", a_count);
    read_if_there(device.latency, links, "latency", a_time);
    read_if_there(device.rate, links, "rate", a_rate);
    read_if_there(device.latency_between_nodes, links, "latency_between_nodes", a_time);
    read_if_there(device.rate_between_nodes, links, "rate_between_nodes", a_rate);
    read_if_there(device.copies, links, "copies", a_rate);
  }
  return device;
} catch (const Error& error) {
  if (error.code == Exit::bad_configuration) fail(Exit::bad_data, "{}", error.what());
  throw;
}

}  // namespace mindpipe
