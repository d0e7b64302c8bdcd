#include "libcore/convert/sources/hf_rope.h"

#include <cmath>
#include <string>

#include "libcore/base/text.h"

namespace megalith {
namespace {

// The list of numbers at `key`, separated by commas.
std::string number_list(const Settings& rope, const char* key) {
  const Json* list = rope.find(key);
  if (!list || !list->is_array())
    rope.refuse(list ? concat(quote(key), " is ", list->dump()) : concat("has no ", quote(key)),
                ", wanted a list of numbers");
  std::vector<std::string> numbers;
  for (const Json& number : list->as_array()) {
    if (!number.is_number()) rope.refuse(quote(key), " holds ", number.dump(), ", wanted numbers");
    numbers.push_back(format_double(number.as_double()));
  }
  return join(numbers, ",");
}

Json::Array as_list(const std::string& numbers) {
  Json::Array list;
  for (const double number : rope_factors(numbers)) list.emplace_back(number);
  return list;
}

// By how much the model's positions exceed the original ones, which is the factor of a file that says none.
double growth_of(const ModelConfig& c) {
  return static_cast<double>(c.max_positions) / c.rope_original_positions;
}

// As transformers' standardize_rope_params(): the file's own member, which is Phi-3's place for it, goes
// before that of `rope`.
int original_positions(const ModelConfig& c, const RotationRule& rule, const Settings& rope,
                       const Settings& file) {
  constexpr const char* kOriginal = "original_max_position_embeddings";
  const int otherwise =
      rule.original_positions > 0 ? rule.original_positions : rope.count(kOriginal, c.max_positions);
  return file.count(kOriginal, otherwise);
}

// The factor of rotated heads for yarn with two scales of the magnitude (transformers' get_mscale); 0: the
// file does not have both.
double magnitude_by_scales(const ModelConfig& c, const Settings& rope) {
  const double numerator = rope.number("mscale", 0), denominator = rope.number("mscale_all_dim", 0);
  if (numerator == 0 || denominator == 0) return 0;
  const auto scaled = [&](double scale) {
    return c.rope_factor <= 1 ? 1.0 : 0.1 * scale * std::log(c.rope_factor) + 1;
  };
  return scaled(numerator) / scaled(denominator);
}

void set_dynamic(ModelConfig& c, const Settings& rope) {
  if (!rope.find("factor")) rope.refuse("has no \"factor\"");
  c.rope_type = RopeType::kDynamic;
  c.rope_original_positions = c.max_positions;
  c.rope_factor = rope.number("factor", 0);
}

void set_yarn(ModelConfig& c, const RotationRule& rule, const Settings& rope, const Settings& file) {
  c.rope_type = RopeType::kYarn;
  c.rope_original_positions = original_positions(c, rule, rope, file);
  c.rope_factor = rope.number("factor", growth_of(c));
  c.rope_beta_fast = rope.number("beta_fast", 32);
  c.rope_beta_slow = rope.number("beta_slow", 1);
  c.rope_truncate = rope.flag("truncate", true);
  c.rope_attention_factor = rope.number("attention_factor", magnitude_by_scales(c, rope));
}

void set_longrope(ModelConfig& c, const RotationRule& rule, const Settings& rope, const Settings& file) {
  c.rope_type = RopeType::kLongrope;
  c.rope_original_positions = original_positions(c, rule, rope, file);
  c.rope_factor = rope.number("factor", growth_of(c));
  c.rope_attention_factor = rope.number("attention_factor", 0);
  c.rope_short_factors = number_list(rope, "short_factor");
  c.rope_long_factors = number_list(rope, "long_factor");
}

}  // namespace

bool set_long_rope(ModelConfig& c, const RotationRule& rule, const Settings& rope, const Settings& file) {
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (type == "dynamic")
    set_dynamic(c, rope);
  else if (type == "yarn")
    set_yarn(c, rule, rope, file);
  else if (type == "longrope" || type == "su")  // the name in the first files of Phi-3
    set_longrope(c, rule, rope, file);
  else
    return false;
  if (c.rope_attention_factor < 0 || (rope.find("attention_factor") && c.rope_attention_factor == 0))
    rope.refuse("\"attention_factor\" is not positive");
  return true;
}

Json::Object long_rope_parameters(const ModelConfig& c) {
  if (c.rope_type == RopeType::kDefault) return {};
  Json::Object rope{{"rope_type", enum_name(c.rope_type)}};
  const bool by_list = c.rope_type == RopeType::kLongrope;
  if (!by_list || c.rope_factor != growth_of(c)) rope.push_back({"factor", c.rope_factor});
  if (c.rope_type == RopeType::kDynamic) return rope;
  rope.push_back({"original_max_position_embeddings", c.rope_original_positions});
  if (c.rope_attention_factor > 0) rope.push_back({"attention_factor", c.rope_attention_factor});
  if (by_list)
    rope.insert(rope.end(), {{"short_factor", as_list(c.rope_short_factors)},
                             {"long_factor", as_list(c.rope_long_factors)}});
  else
    rope.insert(
        rope.end(),
        {{"beta_fast", c.rope_beta_fast}, {"beta_slow", c.rope_beta_slow}, {"truncate", c.rope_truncate}});
  return rope;
}

Json rope_scaling_of(const ModelConfig& c, const RotationRule& rule, const Json::Object& parameters) {
  if (rule.original_positions == 0) return parameters;
  if (c.rope_attention_factor > 0 || c.rope_factor != growth_of(c)) return {};
  return Json::Object{{"type", "longrope"},
                      {"short_factor", as_list(c.rope_short_factors)},
                      {"long_factor", as_list(c.rope_long_factors)}};
}

}  // namespace megalith
