#pragma once

#include "libcore/doctor/finding.h"

namespace megalith {

/// The addresses at which other machines reach this one, the loopback that ranks of one machine use, and
/// whether `port` (--master-port) is free.
Findings check_network(int port);

}  // namespace megalith
