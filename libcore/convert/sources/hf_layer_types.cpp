#include "libcore/convert/sources/hf_layer_types.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr const char *kFull = "full_attention", *kSliding = "sliding_attention";

// Rejects layers with different kinds of attention: only one kind for all layers is supported.
void check_layer_types(const Settings& s, bool window) {
  const Json* types = s.find("layer_types");
  if (!types || !types->is_array()) return;
  for (const Json& type : types->as_array())
    if (!type.is_string() || type.as_string() != (window ? kSliding : kFull))
      s.refuse("\"layer_types\" holds ", type.dump(), ", which is not supported together with ",
               window ? "a sliding window" : "full attention");
}

// Whether each layer has a window, by "layer_types"; nothing if the file lacks that.
std::optional<std::vector<bool>> layer_types(const Settings& s, int layers) {
  const Json* types = s.find("layer_types");
  if (!types) return {};
  std::vector<bool> windowed;
  for (const Json& type : types->is_array() ? types->as_array() : Json::Array{}) {
    const std::string name = type.is_string() ? type.as_string() : type.dump();
    if (name != kSliding && name != kFull)
      s.refuse("\"layer_types\" holds ", quote(name), ", wanted ", kSliding, " or ", kFull);
    windowed.push_back(name == kSliding);
  }
  if (windowed.size() != static_cast<size_t>(layers))
    s.refuse("\"layer_types\" is ", types->dump(), ", wanted a list of ", layers, " types of layers");
  return windowed;
}

// The first layer that has a window, by "max_window_layers".
int64_t first_with_window(const Settings& s) {
  constexpr int64_t kDefault = 28;  // used if the file lacks the member
  const Json* said = s.find("max_window_layers");
  if (!said) return kDefault;
  if (!said->is_int() || said->as_int() < 0)
    s.refuse("\"max_window_layers\" is ", said->dump(), ", wanted a number of layers");
  return said->as_int();
}

}  // namespace

void set_hf_window(ModelConfig& c, const Family& family, const Settings& s, const Json& json) {
  const WindowRule rule = family.window;
  const bool asked =
      rule == WindowRule::kByFlag ? s.flag("use_sliding_window", false) : rule != WindowRule::kNone;
  if (asked)
    c.sliding_window = json.find("sliding_window") ? s.count("sliding_window", 0)  // null means no window
                                                   : family.defaults.window;
  if (rule == WindowRule::kNone || rule == WindowRule::kAll || c.sliding_window == 0)
    return check_layer_types(s, c.sliding_window > 0);
  const int64_t first = rule == WindowRule::kByFlag ? first_with_window(s) : 0;
  if (const auto listed = layer_types(s, c.layers)) {
    if (!set_windowed(c, *listed))
      s.refuse(
          "\"layer_types\" gives a sliding window to some layers in a pattern that is not supported; these "
          "are: to all but every N-th layer, and to all but the first N");
    return;
  }
  c.window_skip_freq = family.full_interval <= c.layers ? family.full_interval : 0;
  if (first >= c.layers)
    c.sliding_window = 0;
  else
    c.full_layers = static_cast<int>(first);
}

namespace {
Json window_or_null(const ModelConfig& c) {
  return c.sliding_window > 0 ? Json(c.sliding_window) : Json();
}

}  // namespace

void add_hf_window(Json::Object& members, WindowRule rule, const ModelConfig& c) {
  if (rule == WindowRule::kByFlag)
    members.insert(members.end(), {{"use_sliding_window", c.sliding_window > 0},
                                   {"max_window_layers", c.sliding_window > 0 ? c.full_layers : c.layers}});
  if (rule != WindowRule::kNone) members.push_back({"sliding_window", window_or_null(c)});
  if (rule != WindowRule::kByType && !c.has_mixed_windows()) return;
  Json::Array types;
  for (int layer = 0; layer < c.layers; ++layer)
    types.emplace_back(c.window_of(layer) > 0 ? kSliding : kFull);
  members.push_back({"layer_types", types});
}

namespace {
bool are_equal(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() ? a.as_double() == b.as_double() : a == b;
}
}  // namespace

// As transformers' classes of these families: "rope_theta" outside is the full layers' base, and the others
// have the default one.
Json with_one_rotation(const Json& file, const std::string& where) {
  const Settings s(file, where);
  const Family* const family = find_family(s.text("model_type", ""));
  if (!family || !family->rope_by_type) return file;
  if (s.find("rope_scaling"))
    s.refuse("\"rope_scaling\" scales the rotation of layers without a window only, which is not supported");
  const double base = s.number("rope_theta", family->defaults.rotary_base);
  const Json* types = s.find("rope_parameters");
  const Json none = Json::object(), all = types ? *types : none;
  const Settings rope(all, concat(where, ": \"rope_parameters\""));
  const auto of_type = [&](const char* type, double otherwise) {
    Json one = rope.find(type) ? *rope.find(type) : Json::object();
    if (!one.find("rope_theta")) one.set("rope_theta", otherwise);
    if (!one.find("rope_type")) one.set("rope_type", "default");
    return one;
  };
  const Json full = of_type(kFull, base), sliding = of_type(kSliding, family->defaults.rotary_base);
  for (const auto& [key, value] : full.as_object()) {
    const Json* other = sliding.find(key);
    if (!other || !are_equal(*other, value))
      s.refuse("the rotation's ", quote(key), " differs between the types of layers, which is not supported");
  }
  Json out = file;
  out.set("rope_parameters", full);
  return out;
}

Json::Object rope_of_types(const Json::Object& rope) {
  return {{kFull, rope}, {kSliding, rope}};
}

}  // namespace megalith
