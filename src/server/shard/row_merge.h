#pragma once

#include "base/rows.h"

namespace baton {

/// The part of `older` that still has an effect if `newer` is applied after it.
RowBatch surviving(const RowBatch& older, const RowBatch& newer);

}  // namespace baton
