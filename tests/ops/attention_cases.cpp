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

/// For the reference: the mask that the attention op derives from dropout_key().
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

/// Processes a prompt, then `step` tokens at a time. The rows of all steps together must equal full attention
/// over the whole sequence.
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

/// Returns the s rows of `whole` at the positions `rows`. A row has `width` numbers.
Values rows_of(const Values& whole, int64_t width, const RowPositions& rows, int64_t s) {
  Values part;
  for (int64_t row = 0; row < s; ++row)
    part.insert(part.end(), whole.begin() + rows.at(row) * width, whole.begin() + (rows.at(row) + 1) * width);
  return part;
}

/// A context-parallel rank's part of a sequence of `attention.heads.s` positions: the queries of some
/// positions and, in a separate tensor, the keys and values of all positions.
struct ContextCase {
  AttentionCase attention;
  int64_t s;
  RowPositions rows;

  HeadShape local() const {
    HeadShape h = attention.heads;
    h.s = s;
    return h;
  }
  Shape kv_shape() const {
    const HeadShape& h = attention.heads;
    return {h.s, h.b, h.groups, 2, h.head};
  }
  /// How many numbers a packed row, a row of keys and values, and a row of outputs hold.
  int64_t packed_width() const { return local().qkv_size() / s; }
  int64_t kv_width() const { return kv_shape().elements() / attention.heads.s; }
  int64_t out_width() const { return local().out_size() / s; }
};

/// Keys and values of a packed tensor, taken by hand: the last two heads of each group.
Values keys_and_values(const HeadShape& h, const Values& qkv) {
  Values kv;
  for (int64_t i = 0; i < h.s * h.b * h.groups; ++i) {
    const auto end = qkv.begin() + (i + 1) * (h.r + 2) * h.head;
    kv.insert(kv.end(), end - 2 * h.head, end);
  }
  return kv;
}

/// The packed tensor with its keys and values replaced.
Values with_keys_and_values(const HeadShape& h, Values qkv, const Values& kv) {
  for (int64_t i = 0; i < h.s * h.b * h.groups; ++i)
    std::copy_n(kv.begin() + i * 2 * h.head, 2 * h.head,
                qkv.begin() + (i + 1) * (h.r + 2) * h.head - 2 * h.head);
  return qkv;
}

DropoutKey context_key(Bed& bed, const ContextCase& c) {
  DropoutKey key = attention_key(bed, c.attention);
  key.rows = c.rows;
  key.rows.first += 9;  // 9 is the position of the sequence's first query in attention_mask()
  return key;
}

/// The local queries' packed tensor; its own keys and values, which must not be read, are NaN.
View local_queries(Bed& bed, const ContextCase& c, const Values& qkv) {
  const HeadShape h = c.local();
  const Values none(static_cast<size_t>(c.s * c.kv_width()), std::nan(""));
  return bed.put(c.attention.dtype, packed_shape(h),
                 with_keys_and_values(h, rows_of(qkv, c.packed_width(), c.rows, c.s), none));
}

/// The part [b, heads, s] of `lse` [b, heads, s_total] for the local queries.
Values local_lse(const ContextCase& c, const Values& lse) {
  Values part;
  for (auto head = lse.begin(); head != lse.end(); head += c.attention.heads.s)
    for (int64_t row = 0; row < c.s; ++row) part.push_back(head[c.rows.at(row)]);
  return part;
}

std::vector<Outcome> run_context_attention(Bed& bed, const ContextCase& c) {
  const HeadShape &h = c.attention.heads, local = c.local();
  const DType dtype = c.attention.dtype;
  Values qkv = random_values(h.qkv_size(), 1, 1.5);
  bed.put(dtype, packed_shape(h), qkv);  // rounds qkv to dtype
  const View out = bed.empty(dtype, out_shape(local)),
             lse = bed.empty(DType::kF32, {h.b, h.groups * h.r, c.s});
  run(bed.stream(), Attention{.out = out,
                              .qkv = local_queries(bed, c, qkv),
                              .scale = scale_of(h),
                              .lse = lse,
                              .dropout = context_key(bed, c),
                              .kv = bed.put(dtype, c.kv_shape(), keys_and_values(h, qkv)),
                              .rows = c.rows});
  const AttentionResult want =
      reference_attention(h, qkv, static_cast<double>(scale_of(h)), attention_mask(c.attention));
  return {{"out", bed.get(out), rows_of(want.out, c.out_width(), c.rows, c.s), tolerance_of(dtype) * 2},
          {"lse", bed.get(lse), local_lse(c, want.lse), kFp32}};
}

/// d/d(queries) and d/d(keys, values) of the local queries' outputs times dout.
std::vector<Outcome> run_context_attention_grad(Bed& bed, const ContextCase& c) {
  const HeadShape &h = c.attention.heads, local = c.local();
  const DType dtype = c.attention.dtype;
  const double scale = static_cast<double>(scale_of(h));
  const MaskFunction mask = attention_mask(c.attention);
  Values qkv = random_values(h.qkv_size(), 1), dout = random_values(local.out_size(), 2);
  bed.put(dtype, packed_shape(h), qkv);  // rounds qkv to dtype
  const Values kv = keys_and_values(h, qkv);
  const AttentionResult forward = reference_attention(h, qkv, scale, mask);
  const View dqkv = bed.put(dtype, packed_shape(local), Values(static_cast<size_t>(local.qkv_size()), 0.0)),
             dkv = bed.empty(dtype, c.kv_shape());
  run(bed.stream(),
      AttentionGrad{.dqkv = dqkv,
                    .dout = bed.put(dtype, out_shape(local), dout),
                    .out = bed.put(dtype, out_shape(local), rows_of(forward.out, c.out_width(), c.rows, c.s)),
                    .qkv = local_queries(bed, c, qkv),
                    .lse = bed.put(DType::kF32, {h.b, h.groups * h.r, c.s}, local_lse(c, forward.lse)),
                    .scale = scale_of(h),
                    .dropout = context_key(bed, c),
                    .kv = bed.put(dtype, c.kv_shape(), Values(kv)),
                    .dkv = dkv,
                    .rows = c.rows});
  // Compares both gradients in one outcome, as for a packed tensor: compared alone, some gradients of queries
  // would be too small relative to their rounding errors.
  const auto loss = [&](const Values& at) {
    const auto keys = at.begin() + local.qkv_size();
    Values whole = qkv;
    for (int64_t row = 0; row < c.s; ++row)
      std::copy_n(at.begin() + row * c.packed_width(), c.packed_width(),
                  whole.begin() + c.rows.at(row) * c.packed_width());
    whole = with_keys_and_values(h, whole, Values(keys, at.end()));
    const Values out = reference_attention(h, whole, scale, mask).out;
    return inner(rows_of(out, c.out_width(), c.rows, c.s), dout);
  };
  Values at = rows_of(qkv, c.packed_width(), c.rows, c.s), got = bed.get(dqkv);
  const Values got_keys = bed.get(dkv);
  at.insert(at.end(), kv.begin(), kv.end());
  got.insert(got.end(), got_keys.begin(), got_keys.end());
  Outcome outcome = gradient(bed, "dqkv and dkv", got, loss, at, tolerance_of(dtype) * 4);
  // If a query sees few keys, dP nearly equals its mean, which is computed from the rounded output, so they
  // cancel. Times a key, these terms are about 1.
  if (dtype != DType::kF32) outcome.size += 1;
  return {outcome};
}

/// Copies keys and values from a packed tensor to another one, whose other heads stay unchanged.
std::vector<Outcome> run_copy_key_values(Bed& bed, const HeadShape& h, DType dtype) {
  Values qkv = random_values(h.qkv_size(), 1), other = random_values(h.qkv_size(), 2);
  const View from = bed.put(dtype, packed_shape(h), qkv), to = bed.put(dtype, packed_shape(h), other);
  const View kv = bed.empty(dtype, {h.s, h.b, h.groups, 2, h.head});
  run(bed.stream(), CopyKeyValues{.to = kv, .from = from});
  run(bed.stream(), CopyKeyValues{.to = to, .from = kv});
  const Values want = keys_and_values(h, qkv);
  return {{"kv", bed.get(kv), want, 0}, {"qkv", bed.get(to), with_keys_and_values(h, other, want), 0}};
}

/// Each sequence's first keys and values are the prefix. Its gradient is added to a tensor of ones.
std::vector<Outcome> run_prefix(Bed& bed, DType dtype) {
  const int64_t p = 3, b = 2, groups = 2, head = 6;
  Values prefix = random_values(2 * groups * p * head, 4), dkv = random_values(p * b * groups * 2 * head, 5);
  const View kv = bed.empty(dtype, {p, b, groups, 2, head});
  run(bed.stream(), PutPrefix{.kv = kv, .prefix = bed.put(dtype, {2, groups, p, head}, prefix)});
  const View gradient = bed.put(DType::kF32, {2, groups, p, head}, Values(prefix.size(), 1.0));
  run(bed.stream(), PrefixGrad{.dprefix = gradient, .dkv = bed.put(dtype, {p, b, groups, 2, head}, dkv)});
  Values want(dkv.size()), want_gradient(prefix.size(), 1.0);
  for (int64_t row = 0; row < p; ++row)
    for (int64_t sequence = 0; sequence < b; ++sequence)
      for (int64_t group = 0; group < groups; ++group)
        for (int64_t kind = 0; kind < 2; ++kind)
          for (int64_t i = 0; i < head; ++i) {
            const auto packed =
                static_cast<size_t>((((row * b + sequence) * groups + group) * 2 + kind) * head + i);
            const auto own = static_cast<size_t>(((kind * groups + group) * p + row) * head + i);
            want[packed] = prefix[own];
            want_gradient[own] += dkv[packed];
          }
  return {{"kv", bed.get(kv), want, 0}, {"dprefix", bed.get(gradient), want_gradient, 1e-6}};
}

struct RopeCase {
  HeadShape heads;
  int64_t half;
  RowPositions rows;
  DType dtype = DType::kF32;
};

std::vector<Outcome> run_rope(Bed& bed, const RopeCase& c) {
  const HeadShape& h = c.heads;
  const int64_t positions = c.rows.end(h.s);
  Values qkv = random_values(h.qkv_size(), 1), cos(static_cast<size_t>(positions * c.half)), sin = cos;
  for (size_t i = 0; i < cos.size(); ++i) {
    cos[i] = std::cos(0.7 * static_cast<double>(i));
    sin[i] = std::sin(0.7 * static_cast<double>(i));
  }
  const View view = bed.put(c.dtype, packed_shape(h), qkv);
  const View cos_view = bed.put(DType::kF32, {positions, c.half}, cos);
  const View sin_view = bed.put(DType::kF32, {positions, c.half}, sin);
  Rope op{.qkv = view, .cos = cos_view, .sin = sin_view, .rows = c.rows};
  run(bed.stream(), op);
  Outcome forward{"rotated", bed.get(view), reference_rope(h, qkv, cos, sin, c.half, c.rows),
                  tolerance_of(c.dtype)};
  op.inverse = true;  // a rotation's gradient is the inverse rotation
  run(bed.stream(), op);
  return {forward, {"rotated back", bed.get(view), qkv, tolerance_of(c.dtype) * 2}};
}

}  // namespace

namespace {

/// Adds cases of two, three and four ranks, with spans shorter than, as long as and longer than a block of
/// queries.
void add_context_cases(std::vector<OpCase>& cases, DType dtype) {
  const auto add = [&](const HeadShape& heads, int64_t s, const RowPositions& rows, float p) {
    const ContextCase c{{heads, dtype, p}, s, rows};
    const std::string type = concat(" ", name_of(dtype), " s", s, " of ", heads.s, " from ", rows.first, " d",
                                    heads.head, " p", p);
    cases.push_back({"attention context" + type, [c](Bed& bed) { return run_context_attention(bed, c); }});
    cases.push_back(
        {"attention_grad context" + type, [c](Bed& bed) { return run_context_attention_grad(bed, c); }});
  };
  add({20, 2, 2, 2, 17}, 10, {.first = 0, .split = 5, .jump = 10}, 0);
  add({20, 2, 2, 2, 17}, 10, {.first = 5, .split = 5, .jump = 0}, 0.25f);
  add({150, 1, 1, 2, 32}, 50, {.first = 25, .split = 25, .jump = 50}, 0.1f);
  add({176, 1, 2, 1, 64}, 44, {.first = 44, .split = 22, .jump = 44}, 0);
  add({304, 1, 1, 1, 16}, 152, {.first = 0, .split = 76, .jump = 152}, 0.2f);
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases, const Types& types) {
  const auto add = [&](const std::string& name, const AttentionCase& c) {
    const std::string type = concat(" ", name_of(c.dtype), " ", name, " s", c.heads.s, " b", c.heads.b, " g",
                                    c.heads.groups, " r", c.heads.r, " d", c.heads.head);
    cases.push_back({"attention" + type, [c](Bed& bed) { return run_attention(bed, c); }});
    if (c.keep_lse)
      cases.push_back({"attention_grad" + type, [c](Bed& bed) { return run_attention_grad(bed, c); }});
  };
  for (const DType dtype : types) {
    for (const int64_t head : {1, 16, 17, 64, 80}) add("heads", {{33, 2, 2, 1, head}, dtype});
    for (const int64_t head : {96, 128, 160}) add("wide heads", {{35, 1, 1, 2, head}, dtype});
    if (dtype == DType::kBf16)  // for CUDA's tiles on tensor cores
      for (const int64_t head : {64, 88, 128}) add("several tiles", {{260, 1, 1, 1, head}, dtype, 0.1f});
    add("one position", {{1, 1, 1, 1, 8}, dtype});
    add("grouped", {{40, 2, 2, 3, 24}, dtype});
    add("long", {{150, 1, 1, 1, 32}, dtype});
    add("no lse", {{20, 1, 1, 2, 16}, dtype, 0, false});
    add("dropout", {{37, 2, 1, 2, 16}, dtype, 0.25f});
    add("grouped wide", {{69, 1, 1, 2, 96}, dtype, 0.2f});
    add("dropout long", {{141, 1, 2, 1, 8}, dtype, 0.1f});
    const std::string type = concat(" ", name_of(dtype));
    cases.push_back({"cached_attention" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {20, 2, 2, 3, 17}, dtype, 7, 1);
                     }});
    cases.push_back({"cached_attention blocks" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {150, 1, 1, 2, 64}, dtype, 40, 50);
                     }});
    cases.push_back({"cached_attention parts" + type, [=](Bed& bed) {
                       return run_cached_attention(bed, {601, 1, 2, 2, 40}, dtype, 594, 3);
                     }});
    cases.push_back({"rope" + type, [=](Bed& bed) {
                       return run_rope(bed, {{7, 2, 2, 3, 64}, 32, {}, dtype});
                     }});
    cases.push_back({"rope part" + type, [=](Bed& bed) {
                       return run_rope(bed, {{5, 1, 3, 1, 34}, 9, {.first = 4}, dtype});
                     }});
    cases.push_back(
        {"rope context" + type, [=](Bed& bed) {
           return run_rope(bed, {{6, 2, 1, 2, 32}, 16, {.first = 2, .split = 4, .jump = 7}, dtype});
         }});
    cases.push_back({"copy_key_values context" + type, [=](Bed& bed) {
                       return run_copy_key_values(bed, {5, 2, 3, 2, 9}, dtype);
                     }});
    cases.push_back({"prefix" + type, [=](Bed& bed) { return run_prefix(bed, dtype); }});
    add_context_cases(cases, dtype);
  }
}

}  // namespace megalith::test
