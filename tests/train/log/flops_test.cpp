#include "libcore/train/log/flops.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// The expected figures were computed in Python with the formula of megatron-core 0.12's
// num_floating_point_operations.
TEST(ModelFlops, AreThoseOfMegatron) {
  ModelConfig gpt2;
  gpt2.layers = 12;
  gpt2.hidden = 768;
  gpt2.heads = 12;
  gpt2.seq_length = 1024;
  gpt2.finish();
  EXPECT_DOUBLE_EQ(model_flops(gpt2, 50304, 8), 7001333563392.0);

  ModelConfig llama;
  llama.layers = 32;
  llama.hidden = 4096;
  llama.ffn_hidden = 14336;
  llama.heads = 32;
  llama.group_query = llama.swiglu = true;
  llama.query_groups = 8;
  llama.seq_length = 8192;
  llama.finish();
  EXPECT_DOUBLE_EQ(model_flops(llama, 128256, 4), 1897688350064640.0);
}

}  // namespace
}  // namespace megalith
