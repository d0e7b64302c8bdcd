#include "libcore/base/figures/page.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr const char* kStyle = R"(:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 800px; margin: 2em auto; padding: 0 1em; }
h1 { overflow-wrap: anywhere; }
h2 { font-size: 1.1em; margin: 1.6em 0 .4em; } h3 { font-size: .95em; margin: 1em 0 .2em; }
.wide-table { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .1em 1.2em .1em 0; vertical-align: top; }
th { font-weight: 500; opacity: .75; } td, pre { overflow-wrap: anywhere; }
.wide-table td { overflow-wrap: normal; }
pre { white-space: pre-wrap; border-left: 3px solid #8886; padding-left: 1em; }
@media (max-width: 560px) { body { margin: 1em auto; } th, td { padding-right: .7em; } }
)";

std::string row_of(const std::vector<std::string>& cells) {
  std::string out = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    out += concat(i == 0 ? "<th>" : "<td>", escape_markup(cells[i]), i == 0 ? "</th>" : "</td>");
  return out + "</tr>\n";
}

}  // namespace

std::string page_begin(std::string_view title, std::string_view style) {
  const std::string text = escape_markup(title);
  return concat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
      text, "</title>\n<style>\n", kStyle, style, "</style></head><body>\n<h1>", text, "</h1>\n");
}

std::string page_end() {
  return "</body></html>\n";
}

std::string chart_section(const std::string& heading, const ChartNames& names,
                          const std::vector<ChartSeries>& series) {
  if (std::ranges::all_of(series, [](const ChartSeries& s) { return s.points->empty(); })) return {};
  return "<h2>" + escape_markup(heading) + "</h2>\n" + chart_html(names, series);
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table>\n";
  for (const std::vector<std::string>& row : rows) out += row_of(row);
  return out + "</table>\n";
}

std::string html_table(const std::vector<std::string>& headings,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string head = "<tr>";
  for (const std::string& heading : headings) head += "<th>" + escape_markup(heading) + "</th>";
  std::string out = "<div class=\"wide-table\"><table>\n" + head + "</tr>\n";
  for (const std::vector<std::string>& row : rows) out += row_of(row);
  return out + "</table></div>\n";
}

std::string folded(std::string_view summary, const std::string& inside) {
  return concat("<details><summary>", escape_markup(summary), "</summary>\n", inside, "</details>\n");
}

}  // namespace megalith
