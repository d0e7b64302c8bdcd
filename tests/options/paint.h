#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/options/fields.h"
#include "libcore/options/problems.h"

namespace megalith::test {

enum class Colour { kRed, kGreen };
inline std::vector<EnumName<Colour>> enum_names(Colour) {
  return {{"red", Colour::kRed}, {"green", Colour::kGreen}};
}

/// Options of every type, which tests of command lines read.
struct Paint {
  int coats = 1;
  double thickness = 0.25;
  bool dry = false, primer = true;
  std::optional<bool> gloss;
  std::optional<int64_t> drops;
  std::string brush = "flat";
  std::vector<std::string> keys = {"text"};
  Colour colour = Colour::kRed;
  std::string wall;

  template <class V>
  void fields(V&& v) {
    v("wall", wall, "Wall to paint.", positional(), required(), metavar("WALL"));
    v("coats", coats, "Coats of paint.", at_least(1), alias({"layers_of_paint"}));
    v("thickness", thickness, "Thickness of a coat in mm.", between(0, 2));
    v("dry-run", dry, "Paint nothing.");
    v("primer", primer, "Begin with a primer.", opposite({"skip-primer"}));
    v("gloss", gloss, "Shine.", default_text("as the paint has it"));
    v("drops", drops, "Drops that may fall.", at_least(0));
    v("brush", brush, "Kind of brush.", one_of({"flat", "round"}));
    v("keys", keys, "Keys of the colour cabinet.");
    v("colour", colour, "Colour of the paint.");
  }
  void validate(Problems& problems) const {
    if (dry && coats > 5) problems.add(Opt{"dry-run"}, " with ", Opt{"coats"}, ' ', coats, " is odd");
  }
};

}  // namespace megalith::test
