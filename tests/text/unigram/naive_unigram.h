#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "libcore/text/unigram/unigram_model.h"

namespace megalith::test {

/// The letters of random_unigram(): characters of one to four bytes, one of which no model knows.
inline const std::vector<std::string> kUnigramLetters = {"a",      "b",          " ", "\u00e9",
                                                         "\u65e5", "\U0001F600", "?"};

/// What a unigram model makes of a text: the algorithm of unigram_model.cc (sentencepiece 0.2.3,
/// EncodeOptimized; Sum is float) and of model.rs (tokenizers 0.23; double), for a text as a whole.
template <class Sum>
std::vector<std::string> naive_cut(const UnigramModel& model, const std::string& text) {
  std::unordered_map<std::string_view, Sum> scores;
  size_t longest = 0;
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty()) continue;
    scores[model.tokens[id]] = static_cast<Sum>(model.scores[id]);
    longest = std::max(longest, model.tokens[id].size());
  }
  const auto unknown = static_cast<Sum>(model.rules.unknown_score);
  struct Node {
    Sum best = 0;
    size_t from = SIZE_MAX;
  };
  std::vector<Node> nodes(text.size() + 1);
  size_t farthest = 0;
  for (size_t at = 0; at < text.size();) {
    size_t character = 1;
    while (at + character < text.size() && (text[at + character] & '\xC0') == '\x80') ++character;
    Sum here = nodes[at].best;
    if (std::is_same_v<Sum, float> && std::abs(here) > 100000.0f) {
      for (size_t i = at; i <= farthest; ++i)
        if (i == at || nodes[i].from != SIZE_MAX) nodes[i].best -= here;
      here = 0;
    }
    const auto offer = [&](size_t end, Sum sum) {
      farthest = std::max(farthest, end);
      if (nodes[end].from == SIZE_MAX || sum > nodes[end].best) nodes[end] = {sum, at};
    };
    bool single = false;
    for (size_t bytes = 1; bytes <= longest && at + bytes <= text.size(); ++bytes) {
      const auto found = scores.find(std::string_view(text).substr(at, bytes));
      if (found == scores.end()) continue;
      offer(at + bytes, found->second + here);
      single = single || bytes == character;
    }
    if (!single) offer(at + character, unknown + here);
    at += character;
  }
  std::vector<std::string> pieces;
  for (size_t end = text.size(); end > 0; end = nodes[end].from)
    pieces.push_back(text.substr(nodes[end].from, end - nodes[end].from));
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

/// A model of pieces of kUnigramLetters, with ties, with scores that need rounding, or with large ones.
inline UnigramModel random_unigram(std::mt19937& random, UnigramRules::Sums sums) {
  UnigramModel model;
  model.name = "random";
  model.rules.sums = sums;
  const size_t kind = random() % 4, letters = 1 + random() % (kUnigramLetters.size() - 1);
  const auto score = [&] {
    const auto some = static_cast<float>(random() % 20'000'000);
    if (kind == 0) return -static_cast<double>(random() % 5);
    if (kind == 1) return static_cast<double>(-some / 1e6F);
    if (kind == 2) return static_cast<double>(-some / 1e6F + 5);
    return static_cast<double>(-some / 1e2F);
  };
  std::map<std::string, double> tokens;
  for (size_t n = random() % 60; n > 0; --n) {
    std::string text;
    for (size_t i = 1 + random() % (random() % 8 == 0 ? 12 : 4); i > 0; --i)
      text += kUnigramLetters[random() % letters];
    tokens[text] = score();
  }
  model.tokens = {""};  // the unknown token
  model.scores = {0};
  double worst = 0;
  for (const auto& [text, value] : tokens) {
    model.tokens.push_back(text);
    model.scores.push_back(value);
    worst = std::min(worst, value);
  }
  model.rules.unknown_score = worst - 10;
  return model;
}

inline std::string random_unigram_text(std::mt19937& random) {
  std::string text;
  for (size_t n = random() % (random() % 10 == 0 ? 400 : 30); n > 0; --n) {
    const std::string& letter = kUnigramLetters[random() % kUnigramLetters.size()];
    for (size_t k = random() % 8 == 0 ? random() % 20 : 1; k > 0; --k) text += letter;
  }
  return text;
}

}  // namespace megalith::test
