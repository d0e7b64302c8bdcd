#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/ops/cases.h"

/// Helpers for NAME_cases.cpp and cases.cpp only.
namespace megalith::test {

// Tolerances. fp32: a few ulp (6e-8) of intermediate values, more where a sum of k terms rounds k times.
// bf16: half an ulp of storage, 2^-9 of the value, once per stored tensor. fp16: likewise, 2^-12.
inline constexpr double kFp32 = 2e-6, kBf16 = 0x1p-8, kFp16 = 0x1p-11;
double tolerance_of(DType dtype);

double inner(const Values& a, const Values& b);
Values plus(Values a, const Values& b);
/// Random ids below `vocabulary`.
Values some_ids(int64_t n, int64_t vocabulary);

/// An outcome that compares the gradient `got` of f at x with finite differences, at some places.
Outcome gradient(const Bed& bed, std::string what, const Values& got,
                 const std::function<double(const Values&)>& f, const Values& x, double tolerance);

// The second number does not fit in 32 bits.
inline constexpr std::array kSampleNumbers = {3.0, 4294967296.0 * 5 + 7, 11.0};
DropoutKey dropout_key(Bed& bed, int64_t batch, float p);

void add_linear_cases(std::vector<OpCase>& cases, const Types& types);
void add_slot_cases(std::vector<OpCase>& cases, const Types& types);
void add_norm_cases(std::vector<OpCase>& cases, const Types& types);
void add_heads_norm_cases(std::vector<OpCase>& cases, const Types& types);
void add_activation_cases(std::vector<OpCase>& cases, const Types& types);
void add_dropout_cases(std::vector<OpCase>& cases, const Types& types);
void add_attention_cases(std::vector<OpCase>& cases, const Types& types);
void add_embedding_cases(std::vector<OpCase>& cases, const Types& types);
void add_loss_cases(std::vector<OpCase>& cases, const Types& types);
void add_optimizer_cases(std::vector<OpCase>& cases, const Types& types);
void add_step_cases(std::vector<OpCase>& cases);

}  // namespace megalith::test
