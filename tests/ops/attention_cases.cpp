#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

struct AttentionCase {
  HeadShape heads;
  DType dtype = DType::kF32;
  float p = 0;
  bool keep_lse = true;
};

Shape packed_shape(const HeadShape& h) {
  return {h.s, h.b, h.groups, h.r + 2, h.head};
}
Shape out_shape(const HeadShape& h) {
  return {h.s, h.b, h.groups * h.r, h.head};
}

constexpr int64_t kFirstHead = 2;

/// The mask of the attention op under dropout_key.
MaskFunction attention_mask(const AttentionCase& c) {
  if (c.p == 0) return {};
  return [c](int64_t sequence, int64_t head, int64_t query, int64_t key) {
    return reference_mask({static_cast<double>(c.p), 1234, 6, 2,
                           static_cast<int64_t>(kSampleNumbers[static_cast<size_t>(sequence)]), 9 + query,
                           (kFirstHead + head) * c.heads.s + key});
  };
}

DropoutKey attention_key(Bed& bed, const AttentionCase& c) {
  if (c.p == 0) return {};
  DropoutKey key = dropout_key(bed, c.heads.b, c.p);
  key.first_head = kFirstHead;
  return key;
}

float scale_of(const HeadShape& h) {
  return 1 / std::sqrt(static_cast<float>(h.head));
}

std::vector<Outcome> run_attention(Bed& bed, const AttentionCase& c) {
  const HeadShape& h = c.heads;
  Values qkv = random_values(h.qkv_size(), 1, 1.5);
  const View out = bed.empty(c.dtype, out_shape(h));
  const View lse = c.keep_lse ? bed.empty(DType::kF32, {h.b, h.groups * h.r, h.s}) : View{};
  run(bed.stream(), Attention{.out = out,
                              .qkv = bed.put(c.dtype, packed_shape(h), qkv),
                              .scale = scale_of(h),
                              .lse = lse,
                              .dropout = attention_key(bed, c)});
  const AttentionResult want =
      reference_attention(h, qkv, static_cast<double>(scale_of(h)), attention_mask(c));
  std::vector<Outcome> outcomes = {{"out", bed.get(out), want.out, tolerance_of(c.dtype) * 2}};
  if (c.keep_lse) outcomes.push_back({"lse", bed.get(lse), want.lse, kFp32});
  return outcomes;
}

std::vector<Outcome> run_attention_grad(Bed& bed, const AttentionCase& c) {
  const HeadShape& h = c.heads;
  const double scale = static_cast<double>(scale_of(h));
  const MaskFunction mask = attention_mask(c);
  Values qkv = random_values(h.qkv_size(), 1), dout = random_values(h.out_size(), 2);
  const View qkv_view = bed.put(c.dtype, packed_shape(h), qkv);
  AttentionResult forward = reference_attention(h, qkv, scale, mask);
  const View dqkv = bed.empty(c.dtype, packed_shape(h));
  run(bed.stream(), AttentionGrad{.dqkv = dqkv,
                                  .dout = bed.put(c.dtype, out_shape(h), dout),
                                  .out = bed.put(c.dtype, out_shape(h), forward.out),
                                  .qkv = qkv_view,
                                  .lse = bed.put(DType::kF32, {h.b, h.groups * h.r, h.s}, forward.lse),
                                  .scale = scale_of(h),
                                  .dropout = attention_key(bed, c)});
  const auto loss = [&](const Values& at) {
    return inner(reference_attention(h, at, scale, mask).out, dout);
  };
  return {gradient(bed, "dqkv", bed.get(dqkv), loss, qkv, tolerance_of(c.dtype) * 4)};
}

/// A prompt, then single tokens: each step's output is the last rows of full attention.
std::vector<Outcome> run_cached_attention(Bed& bed, const HeadShape& h, DType dtype, int64_t prompt,
                                          int64_t step) {
  Values qkv = random_values(h.qkv_size(), 1, 1.5);
  const View all = bed.put(dtype, packed_shape(h), qkv);
  const AttentionResult want = reference_attention(h, qkv, static_cast<double>(scale_of(h)), {});
  const Shape cache{h.b, h.groups, h.s + 3, h.head};
  const View k_cache = bed.empty(dtype, cache), v_cache = bed.empty(dtype, cache);
  const View out = bed.empty(dtype, out_shape(h));
  for (int64_t past = 0; past < h.s;) {
    const int64_t end = std::min(h.s, past == 0 ? prompt : past + step);
    run(bed.stream(), CachedAttention{.out = out.rows(past, end),
                                      .k_cache = k_cache,
                                      .v_cache = v_cache,
                                      .qkv = all.rows(past, end),
                                      .past = past,
                                      .scale = scale_of(h)});
    past = end;
  }
  return {{"out", bed.get(out), want.out, tolerance_of(dtype) * 2}};
}

struct RopeCase {
  HeadShape heads;
  int64_t half, first_position;
  DType dtype = DType::kF32;
};

std::vector<Outcome> run_rope(Bed& bed, const RopeCase& c) {
  const HeadShape& h = c.heads;
  const int64_t positions = c.first_position + h.s;
  Values qkv = random_values(h.qkv_size(), 1), cos(static_cast<size_t>(positions * c.half)), sin = cos;
  for (size_t i = 0; i < cos.size(); ++i) {
    cos[i] = std::cos(0.7 * static_cast<double>(i));
    sin[i] = std::sin(0.7 * static_cast<double>(i));
  }
  const View view = bed.put(c.dtype, packed_shape(h), qkv);
  const View cos_view = bed.put(DType::kF32, {positions, c.half}, cos);
  const View sin_view = bed.put(DType::kF32, {positions, c.half}, sin);
  Rope op{.qkv = view, .cos = cos_view, .sin = sin_view, .first_position = c.first_position};
  run(bed.stream(), op);
  Outcome forward{"rotated", bed.get(view), reference_rope(h, qkv, cos, sin, c.half, c.first_position),
                  tolerance_of(c.dtype)};
  op.inverse = true;  // a rotation's gradient is the rotation back
  run(bed.stream(), op);
  return {forward, {"rotated back", bed.get(view), qkv, tolerance_of(c.dtype) * 2}};
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, const AttentionCase& c) {
    const std::string type = concat(c.dtype == DType::kF32 ? " fp32 " : " bf16 ", name, " s", c.heads.s, " b",
                                    c.heads.b, " g", c.heads.groups, " r", c.heads.r, " d", c.heads.head);
    cases.push_back({"attention" + type, [c](Bed& bed) { return run_attention(bed, c); }});
    if (c.keep_lse)
      cases.push_back({"attention_grad" + type, [c](Bed& bed) { return run_attention_grad(bed, c); }});
  };
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int64_t head : {1, 16, 17, 64, 80}) add("heads", {{33, 2, 2, 1, head}, dtype});
    for (const int64_t head : {128, 160}) add("wide heads", {{35, 1, 1, 2, head}, dtype});
    add("one position", {{1, 1, 1, 1, 8}, dtype});
    add("grouped", {{40, 2, 2, 3, 24}, dtype});
    add("long", {{150, 1, 1, 1, 32}, dtype});
    add("no lse", {{20, 1, 1, 2, 16}, dtype, 0, false});
    add("dropout", {{37, 2, 1, 2, 16}, dtype, 0.25f});
    add("grouped wide", {{69, 1, 1, 2, 96}, dtype, 0.2f});
    add("dropout long", {{141, 1, 2, 1, 8}, dtype, 0.1f});
    const std::string type = dtype == DType::kF32 ? " fp32" : " bf16";
    cases.push_back({"cached_attention" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {20, 2, 2, 3, 17}, dtype, 7, 1);
                     }});
    cases.push_back({"cached_attention blocks" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {150, 1, 1, 2, 64}, dtype, 40, 50);
                     }});
    cases.push_back({"rope" + type, [=](Bed& bed) {
                       return run_rope(bed, {{7, 2, 2, 3, 64}, 32, 0, dtype});
                     }});
    cases.push_back({"rope part" + type, [=](Bed& bed) {
                       return run_rope(bed, {{5, 1, 3, 1, 34}, 9, 4, dtype});
                     }});
  }
}

}  // namespace megalith::test
