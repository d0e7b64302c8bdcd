#include "libcore/plan/simulation/timeline.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "libcore/json/json.h"
#include "libcore/plan/report/plan_html.h"
#include "libcore/plan/report/plan_words.h"
#include "tests/plan/problems.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

using test::gpt_22b;

Plan priced(const PlanProblem& p, Candidate c) {
  const auto rejection = complete(p, c);
  EXPECT_FALSE(rejection) << rejection->reason;
  return make_plan(p, c);
}

double end_of(const std::vector<PlayedStep>& played) {
  double end = 0;
  for (const PlayedStep& at : played) end = std::max(end, at.end);
  return end;
}

// Played through, a pipeline takes as long as the time model's closed forms say.
TEST(Timeline, AgreesWithTheTimeModel) {
  const PlanProblem p = gpt_22b(64);
  for (const Candidate& c : {Candidate{.tensor = 8, .pipeline = 1}, Candidate{.tensor = 8, .pipeline = 8},
                             Candidate{.tensor = 4, .pipeline = 4, .recompute = Recomputed::kFull},
                             Candidate{.tensor = 8, .pipeline = 8, .chunks = 2}}) {
    const Plan plan = priced(p, c);
    const StepTime& t = plan.time;
    const double closed = t.compute + t.recompute + t.tensor_comm + t.bubble;
    const std::vector<PlayedStep> played = play_pipeline(p, plan, plan.candidate.microbatches);
    EXPECT_EQ(static_cast<int64_t>(played.size()), 2 * c.pipeline * c.chunks * plan.candidate.microbatches);
    // With interleaving, and with the head on one stage, stages wait a little longer than the closed form
    // says.
    EXPECT_NEAR(end_of(played) / closed, 1, c.chunks > 1 ? 0.08 : 0.03) << c.pipeline << ' ' << c.chunks;
  }
}

TEST(Timeline, StagesDoOneThingAtATime) {
  const PlanProblem p = gpt_22b(64);
  std::vector<PlayedStep> played = play_pipeline(p, priced(p, {.tensor = 8, .pipeline = 8, .chunks = 3}), 8);
  std::sort(played.begin(), played.end(), [](const PlayedStep& a, const PlayedStep& b) {
    return std::tie(a.stage, a.begin) < std::tie(b.stage, b.begin);
  });
  for (size_t i = 1; i < played.size(); ++i)
    if (played[i].stage == played[i - 1].stage) {
      EXPECT_GE(played[i].begin, played[i - 1].end);
    }
}

TEST(Timeline, IsATraceThatReadersOfChromesFormatTake) {
  const PlanProblem p = gpt_22b(64);
  const Plan plan = priced(p, {.tensor = 8, .pipeline = 4});
  const Json trace = Json::parse(chrome_trace(play_pipeline(p, plan, 100)), "trace");
  const Json::Array& events = trace["traceEvents"].as_array();
  ASSERT_EQ(events.size(), static_cast<size_t>(2 * 4 * plan.candidate.microbatches));
  for (const Json& event : events) {
    EXPECT_EQ(event["ph"].as_string(), "X");
    EXPECT_GT(event["dur"].as_double(), 0);
  }
}

TEST(PlanHtml, IsOnePageBelow300KilobytesWithoutLinks) {
  const PlanProblem p = gpt_22b(64);
  const SearchResult r = search_plans(p, {}, 10);
  const Report report{
      .problem = p, .result = r, .trainer = std::vector<TrainerAnswer>(10), .front = pareto_front(p, {})};
  const std::string page = plan_html(report);
  EXPECT_LT(page.size(), 300000u);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  size_t pictures = 0;
  for (size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 3u);
  for (const char* part : {"color-scheme: light dark", ">milliseconds a sample</text>", "</i>forward",
                           "</i>backward", "<tr><td>1<td>", "@media (max-width: 560px)"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_FALSE(test::Pattern("=[^\"'> ]+/>").is_in(page))
      << "the slash belongs to the value: nothing is closed";
  const std::string step = " microbatches of a step of " + seconds_text(r.plans.front().time.total()) + ";";
  EXPECT_NE(page.find(step), std::string::npos) << step << ": the page has one time of a step";
  EXPECT_EQ(page, plan_html(report));
}

/// The HTML page of a search for plans with this pipeline size. It lists the `top` best ones.
std::string page_of(const PlanProblem& p, int pipeline, size_t top) {
  const SearchResult r = search_plans(p, {.pipeline = pipeline}, top);
  EXPECT_FALSE(r.plans.empty());
  return plan_html({.problem = p,
                    .result = r,
                    .trainer = std::vector<TrainerAnswer>(r.plans.size()),
                    .front = pareto_front(p, {.pipeline = pipeline})});
}

// MT-NLG 530B on 280 machines (arXiv 2201.11990), with as many stages as the model has layers.
TEST(PlanHtml, IsBelow300KilobytesForLongPipelines) {
  PlanProblem p = gpt_22b(2240);
  p.model = test::gpt(105, 20480, 128, 2048, 50257);
  p.max_global_batch = 0;
  p.global_batch = 2240;
  const std::string page = page_of(p, 35, 10);
  EXPECT_LT(page.size(), 300000u);
  EXPECT_EQ(page.find(" of 35 stages are drawn; layers"), std::string::npos) << "all bars have room";
  EXPECT_NE(page.find(" of 35 stages are drawn; 35 of "), std::string::npos);

  p = gpt_22b(1024);
  p.model.layers = 128;
  p.max_global_batch = 0;
  p.global_batch = 1024;
  const std::string deep = page_of(p, 128, 10);
  EXPECT_LT(deep.size(), 300000u);
  EXPECT_NE(deep.find("48 of 128 stages are drawn; layers"), std::string::npos);
  EXPECT_NE(deep.find(">127 (1)</text>"), std::string::npos) << "the last stage is one of them";
}

}  // namespace
}  // namespace megalith
