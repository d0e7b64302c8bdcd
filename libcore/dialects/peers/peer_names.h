#pragma once

#include <span>

#include "libcore/options/cli.h"

namespace megalith {

/// What options of other trainers are called here. They are hints, not aliases: a value may count something
/// else there, or also name a method (litgpt's --precision bf16-true), so the user decides.
///
/// Sources: nanoGPT's train.py; nanochat's scripts/base_train.py; build-nanogpt's train_gpt2.py; litgpt's
/// litgpt/pretrain.py, args.py and config.py; torchtitan's job config and model arguments; Lightning's
/// Trainer; Hugging Face's TrainingArguments, GPT2Config, LlamaConfig and Accelerate; axolotl's config
/// reference; GPT-NeoX's arguments.
std::span<const PeerName> peer_names();

}  // namespace megalith
