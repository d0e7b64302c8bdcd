#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libcore/data/samples/blended_dataset.h"

namespace megalith {

/// Return what blend_by_weights() and blend_exhaustively() return. The result is kept in a file in `folder`
/// for later runs and for the other ranks of a machine, which map the file (see kept_gpt_index()). The file's
/// name is a SHA-256 of the arguments, which determine the index. If `folder` is empty, nothing is kept.
BlendIndex kept_blend_by_weights(std::span<const double> weights, int64_t size, const std::string& folder);
BlendIndex kept_blend_exhaustively(std::span<const int64_t> sizes, const std::string& folder);
/// Whether these find that file, so that they build nothing unless the file is damaged.
bool has_kept_blend_by_weights(std::span<const double> weights, int64_t size, const std::string& folder);
bool has_kept_blend_exhaustively(std::span<const int64_t> sizes, const std::string& folder);

}  // namespace megalith
