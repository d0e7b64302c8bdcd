#include "libcore/checkpoint/torch/pickle.h"

#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/convert/sources/megatron_args.h"
#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(pickle) {
  using namespace megalith;
  const PickleTree tree = parse_pickle(bytes, "pickle");
  leaves_of(tree, tree.root(), "pickle");
  if (const auto args = tree.find_ref(tree.root(), "args")) megatron_config(args_json(tree, *args), "args");
}
