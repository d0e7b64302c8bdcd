#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/plan/price/software.h"

namespace megalith {

/// A program that trains, and how it does this by itself, as far as time and memory depend on it. Commands
/// and the table of measured runs (bench/plan_rows) take it from here.
struct CodeBase {
  const char* name;  // the value of --software
  const char* what;
  const char* source;               // how its features are known
  Software (*software)(bool bf16);  // in bf16, or in fp16
  bool takes_megatrons_options = false;
  /// Whether it divides embedding, layers, final norm and head as one list of equal modules.
  bool cuts_modules = false;
  bool recomputes_products = false;  // Recomputed::kProducts is its selective recomputation
};
std::span<const CodeBase> code_bases();
std::vector<std::string> code_base_names();
/// The code base of this name, which is one of code_base_names().
const CodeBase& code_base(std::string_view name);
/// How it trains by itself; Software::code_base is its name.
Software software_by_itself(const CodeBase&, bool bf16);

/// The code bases of plans without --software: on a device, and on this machine's processor.
inline constexpr char kMegatronSoftware[] = "megatron", kMegalithSoftware[] = "megalith";

/// What a run may be told beyond its code base's own ways, in the words of tables of measured runs:
/// "compile".
std::vector<std::string> feature_words();
/// Adds a feature; returns false, and changes nothing, if no feature has this name.
bool add_feature(Software&, std::string_view word);

/// The layers of each stage where modules are divided evenly, and the first stages take the remainder; empty
/// if a stage would have no layer.
std::vector<int> cut_of_modules(int layers, int pipeline);

}  // namespace megalith
