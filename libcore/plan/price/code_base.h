#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/plan/price/software.h"

namespace megalith {

struct ModelShape;  // plan/shape/model_shape.h

/// A training program and its defaults, as far as time and memory depend on them. Commands and the table of
/// measured runs (bench/plan_rows) both read them here.
struct CodeBase {
  const char* name;  // the value of --software
  const char* what;
  const char* source;                    // from what its defaults are known
  Software (*software)(bool bf16);       // its defaults in bf16, or in fp16
  bool takes_megatrons_options = false;  // as launch lines and jobs write them
  /// The layers of each of `pipeline` stages, where it divides them differently from Megatron-LM; nullptr: it
  /// does not. An empty result: as Megatron-LM does.
  std::vector<int> (*cut)(const ModelShape&, int pipeline) = nullptr;
  bool recomputes_products = false;  // Recomputed::kProducts is its selective recomputation
  bool trains_adapters = false;      // of LoRA
  bool has_fitted_runs = false;      // whether the coefficients were fitted to runs of it, too
};
std::span<const CodeBase> code_bases();
std::vector<std::string> code_base_names();
/// The code base of this name, which is one of code_base_names(); kInternal for any other.
const CodeBase& code_base(std::string_view name);
/// The defaults of a code base; Software::code_base is its name.
Software default_software(const CodeBase&, bool bf16);
/// Whether the software's code base takes Megatron-LM's options.
bool takes_megatrons_options(const Software&);

/// The code bases of plans without --software: on a device, and on this machine's processor.
inline constexpr char kMegatronSoftware[] = "megatron", kMegalithSoftware[] = "megalith";

/// The features that a run may switch on in addition to its code base's defaults, named as in tables of
/// measured runs: "compile".
std::vector<std::string> feature_words();
/// Adds a feature; returns false, and changes nothing, if no feature has this name.
bool add_feature(Software&, std::string_view word);

/// The layers of each stage if embedding, layers, final norm and head are one list of modules that is divided
/// evenly, and the first stages take the remainder; empty for a single stage, and if the last one would have
/// no layer.
std::vector<int> cut_of_modules(int layers, int pipeline);
/// The layers of each stage if the last stages have one layer more, the stage of the head included; empty if
/// all have equally many.
std::vector<int> cut_late(int layers, int pipeline);
/// The layers of each stage if the k-th of n stages ends with the module by which the first k have more than
/// k / n of all matrix parameters, where the head is a module, too; empty for a single stage, and if the last
/// one would have no layer.
std::vector<int> cut_by_cost(const ModelShape&, int pipeline);

}  // namespace megalith
