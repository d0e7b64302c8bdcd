#pragma once

#include <vector>

#include "libcore/options/cli.h"

namespace megalith {

/// Notes on environment variables for manual pages: one list for apps that read a tokenizer, one for apps
/// that compute.
inline std::vector<NoteDoc> tokenizer_variables() {
  return {
      {"MEGALITH_CACHE_DIR",
       "Cache of the tables of large tokenizers; else $XDG_CACHE_HOME/megalith, else ~/.cache/megalith."},
      {"HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME",
       "Where a model's id on the Hugging Face hub is looked for; else $XDG_CACHE_HOME/huggingface/hub, else "
       "~/.cache/huggingface/hub. Nothing is downloaded."}};
}

inline std::vector<NoteDoc> thread_variables() {
  return {
      {"OMP_NUM_THREADS", "Threads that compute, where --threads is not given."},
      {"OMP_WAIT_POLICY, GOMP_SPINCOUNT",
       "How threads wait for each other. Where both are unset they soon sleep and leave the cores to "
       "other programs."},
      {"MEGALITH_CUDA_LIBS", "Folders, with colons between, where NVIDIA's libraries are looked for first."}};
}

}  // namespace megalith
