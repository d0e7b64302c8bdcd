#pragma once

#include "libcore/model/measure.h"

namespace megalith {

/// measure() on a dry backend of the caller, which can then be asked what else the ops of the stage need. In
/// measure.cpp.
StageCost dry_pass(Backend& dry, const MeasureInput&);

}  // namespace megalith
