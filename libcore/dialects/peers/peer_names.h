#pragma once

#include <span>

#include "libcore/options/cli.h"

namespace megalith {

/// What options of other trainers are called here. They are hints, not aliases: the values may be counted
/// otherwise there (litgpt's --precision bf16-true also names a method), so the user decides.
///
/// Sources: nanoGPT's train.py; litgpt's litgpt/pretrain.py and args.py; axolotl's config reference; Hugging
/// Face's TrainingArguments and GPT2Config; Lightning's Trainer; build-nanogpt's train_gpt2.py; torchtitan's
/// job config; GPT-NeoX's arguments.
std::span<const PeerName> peer_names();

}  // namespace megalith
