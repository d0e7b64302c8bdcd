#include "libcore/model/rotary/rotary.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

constexpr double kTurn = 6.283185307179586;

/// Lowers a rotary frequency for a context that was lengthened after training, so that angles in the longer
/// context do not exceed those in the original one. LLaMA 3.1 lowers only frequencies with few turns within
/// the original context: the lowest frequencies by the full factor, those with more turns by part of it.
double lengthened(const ModelConfig& config, double frequency) {
  frequency /= config.rotary_interpolation;
  if (!config.rope_scaling) return frequency;
  // Turns within the original context.
  const double waves = config.rope_original_positions * frequency / kTurn;
  const double kept =
      std::clamp((waves - config.rope_low_freq) / (config.rope_high_freq - config.rope_low_freq), 0.0, 1.0);
  return (1 - kept) * frequency / config.rope_factor + kept * frequency;
}

/// The base of dynamic scaling (NTK by parts): it grows with the text, beyond the original context.
double dynamic_base(const ModelConfig& config) {
  const double channels = config.rotary_channels();
  const double length = std::max(config.seq_length, config.rope_original_positions);
  const double growth =
      config.rope_factor * length / config.rope_original_positions - (config.rope_factor - 1);
  return config.rotary_base * std::pow(growth, channels / (channels - 2));
}

/// The pairs between which yarn stretches more and more: `from` is not stretched, `to` is fully.
struct Ramp {
  double from, to;
};
Ramp yarn_ramp(const ModelConfig& config) {
  const double channels = config.rotary_channels();
  // The pair, perhaps between two, that makes this number of turns within the original context.
  const auto pair_of = [&](double turns) {
    return channels * std::log(config.rope_original_positions / (turns * kTurn)) /
           (2 * std::log(config.rotary_base));
  };
  Ramp ramp{pair_of(config.rope_beta_fast), pair_of(config.rope_beta_slow)};
  if (config.rope_truncate) ramp = {std::floor(ramp.from), std::ceil(ramp.to)};
  ramp = {std::max(ramp.from, 0.0), std::min(ramp.to, channels - 1)};
  if (ramp.from == ramp.to) ramp.to += 0.001;  // as in transformers, so that the slope is finite
  return ramp;
}

double yarn_frequency(const ModelConfig& config, const Ramp& ramp, double pair, double frequency) {
  const double stretched = std::clamp((pair - ramp.from) / (ramp.to - ramp.from), 0.0, 1.0);
  return frequency / config.rope_factor * stretched + frequency * (1 - stretched);
}

float magnitude_of(const ModelConfig& config) {
  const bool yarn = config.rope_type == RopeType::kYarn;
  if (!yarn && config.rope_type != RopeType::kLongrope) return 1;
  if (config.rope_attention_factor > 0) return static_cast<float>(config.rope_attention_factor);
  if (config.rope_factor <= 1) return 1;
  const double growth = std::log(config.rope_factor);
  return static_cast<float>(yarn ? 0.1 * growth + 1
                                 : std::sqrt(1 + growth / std::log(config.rope_original_positions)));
}

}  // namespace

Rotation rotation_of(const ModelConfig& config) {
  const int pairs = config.rotary_channels() / 2;
  const bool longer = config.seq_length > config.rope_original_positions;
  const bool by_list = config.rope_type == RopeType::kLongrope, yarn = config.rope_type == RopeType::kYarn;
  const std::vector<double> divisors =
      by_list ? rope_factors(longer ? config.rope_long_factors : config.rope_short_factors)
              : std::vector<double>();
  const double base = config.rope_type == RopeType::kDynamic ? dynamic_base(config) : config.rotary_base;
  const Ramp ramp = yarn ? yarn_ramp(config) : Ramp{};
  Rotation rotation{.frequencies = {}, .magnitude = magnitude_of(config)};
  for (int pair = 0; pair < pairs; ++pair) {
    const double exponent = static_cast<double>(pair) / pairs;
    double frequency = static_cast<float>(std::pow(base, -exponent));
    if (by_list) frequency /= divisors.at(static_cast<size_t>(pair));
    if (yarn) frequency = yarn_frequency(config, ramp, pair, frequency);
    rotation.frequencies.push_back(static_cast<float>(lengthened(config, frequency)));
  }
  return rotation;
}

}  // namespace megalith
