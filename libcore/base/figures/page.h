#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/figures/picture.h"

/// Parts of HTML pages about runs and plans: without scripts or external resources, for light and dark
/// screens.
namespace megalith {

/// The beginning of a page with this title, and its end. `style`: rules beside those that all pages share,
/// such as chart_style().
std::string page_begin(std::string_view title, std::string_view style);
std::string page_end();
/// A heading with a chart below it; empty if no curve has points.
std::string chart_section(const std::string& heading, const ChartNames& names,
                          const std::vector<ChartSeries>& series);
/// A table whose first column names the rows.
std::string html_table(const std::vector<std::vector<std::string>>& rows);
/// A table with a row of headings on top.
std::string html_table(const std::vector<std::string>& headings,
                       const std::vector<std::vector<std::string>>& rows);
/// HTML that a click on the summary unfolds.
std::string folded(std::string_view summary, const std::string& inside);

}  // namespace megalith
