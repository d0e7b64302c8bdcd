#include "libcore/dialects/peers/peer_names.h"

namespace megalith {

std::span<const PeerName> peer_names() {
  // A row without a tool has a name that many scripts use.
  static constexpr PeerName kNames[] = {
      // the model
      {"n-layer", "--num-layers"},            // nanoGPT
      {"n-layers", "--num-layers"},           // torchtitan
      {"num-hidden-layers", "--num-layers"},  // LlamaConfig
      {"n-head", "--num-attention-heads"},    // nanoGPT
      {"n-heads", "--num-attention-heads"},   // torchtitan
      {"num-heads", "--num-attention-heads"},
      {"n-kv-heads", "--num-query-groups"},           // torchtitan
      {"n-query-groups", "--num-query-groups"},       // litgpt
      {"num-key-value-heads", "--num-query-groups"},  // LlamaConfig
      {"n-embd", "--hidden-size"},                    // nanoGPT
      {"d-model", "--hidden-size"},
      {"dim", "--hidden-size"},  // torchtitan
      {"hidden-dim", "--hidden-size"},
      {"intermediate-size", "--ffn-hidden-size"},               // LlamaConfig
      {"n-inner", "--ffn-hidden-size"},                         // GPT2Config
      {"dropout", "--hidden-dropout and --attention-dropout"},  // nanoGPT
      {"resid-pdrop", "--hidden-dropout"},                      // GPT2Config
      {"attn-pdrop", "--attention-dropout"},                    // GPT2Config
      {"rope-theta", "--rotary-base"},                          // LlamaConfig
      {"n-positions", "--max-position-embeddings"},             // GPT2Config
      // lengths and batches
      {"block-size", "--seq-length"},  // nanoGPT
      {"seq-len", "--seq-length"},
      {"sequence-len", "--seq-length"},  // axolotl
      {"context-length", "--seq-length"},
      {"ctx-len", "--seq-length"},
      {"train.max-seq-length", "--seq-length"},  // litgpt
      {"micro-batch", "--micro-batch-size"},
      {"device-batch-size", "--micro-batch-size"},                                    // nanochat
      {"train.micro-batch-size", "--micro-batch-size"},                               // litgpt
      {"train.global-batch-size", "--global-batch-size"},                             // litgpt
      {"total-batch-size", "--global-batch-size, which counts samples, not tokens"},  // nanochat
      {"accumulate-grad-batches", "--gradient-accumulation-steps"},                   // Lightning's Trainer
      {"grad-accum-steps", "--gradient-accumulation-steps"},                          // build-nanogpt
      // steps and the rate
      {"max-iters", "--train-iters"},        // nanoGPT
      {"num-iterations", "--train-iters"},   // nanochat
      {"train.max-steps", "--train-iters"},  // litgpt
      {"training.steps", "--train-iters"},   // torchtitan
      {"max-epochs", "--num-epochs"},        // Lightning's Trainer
      {"train.epochs", "--num-epochs"},      // litgpt
      {"max-lr", "--lr"},                    // build-nanogpt
      {"peak-lr", "--lr"},
      {"optimizer.lr", "--lr"},                        // torchtitan
      {"warmup-iters", "--lr-warmup-iters"},           // nanoGPT
      {"train.lr-warmup-steps", "--lr-warmup-iters"},  // litgpt
      {"beta1", "--adam-beta1"},                       // nanoGPT
      {"beta2", "--adam-beta2"},                       // nanoGPT
      {"grad-clip", "--clip-grad"},                    // nanoGPT
      {"gradient-clip-val", "--clip-grad"},            // Lightning's Trainer
      {"gradient-clipping", "--clip-grad"},            // GPT-NeoX
      {"train.max-norm", "--clip-grad"},               // litgpt
      // precision and memory
      {"precision", "--bf16 or --fp16; fp32 without either"},        // Lightning's Trainer
      {"dtype", "--bf16 or --fp16; fp32 without either"},            // nanoGPT
      {"mixed-precision", "--bf16 or --fp16; fp32 without either"},  // Accelerate
      {"amp", "--bf16 or --fp16"},
      {"gradient-checkpointing",
       "--recompute-granularity full --recompute-method uniform"},  // TrainingArguments
      {"activation-checkpointing", "--recompute-granularity full --recompute-method uniform"},
      {"zero-stage", "--use-distributed-optimizer, which is ZeRO-1"},
      {"fsdp", "--use-distributed-optimizer, which is ZeRO-1"},  // TrainingArguments
      // layouts
      {"tp", "--tensor-model-parallel-size"},
      {"pp", "--pipeline-model-parallel-size"},
      {"cp", "--context-parallel-size"},
      {"dp", "--data-parallel-size"},
      // saves, evaluation and logs
      {"out-dir", "--save"},  // nanoGPT
      {"checkpoint-dir", "--save and --load"},
      {"resume", "--load"},
      {"init-from", "--load"},                     // nanoGPT
      {"save-every", "--save-interval"},           // nanochat
      {"train.save-interval", "--save-interval"},  // litgpt
      {"eval-every", "--eval-interval"},           // nanochat
      {"val-every", "--eval-interval"},
      {"val-check-interval", "--eval-interval"},  // Lightning's Trainer
      {"eval.interval", "--eval-interval"},       // litgpt
      {"log-every", "--log-interval"},
      {"log-every-n-steps", "--log-interval"},   // Lightning's Trainer
      {"train.log-interval", "--log-interval"},  // litgpt
  };
  return kNames;
}

}  // namespace megalith
