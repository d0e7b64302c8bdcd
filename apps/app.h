#pragma once

#include <functional>

#include "libcore/options/cli.h"

namespace megalith {

/// What every main() does: runs `body` and turns an Error into one line on stderr, `NAME: error: TEXT`, and
/// its exit code; wrong usage ends with a line that names --help. Returns body's value when nothing is
/// thrown; 70 for an exception that is not ours, 74 when stdout cannot be written, 0 and no word when its
/// reader has gone. Opens standard descriptors that are closed.
int run_app(const char* name, const std::function<int()>& body);

/// Reads and checks the command line. Returns whether to go on; when not, --help or its like was printed on
/// stdout.
bool parse_options(Options& options, int argc, const char* const* argv);
/// The first half of it, so that an app may ask a checkpoint before options.check().
bool read_options(Options& options, int argc, const char* const* argv);

}  // namespace megalith
