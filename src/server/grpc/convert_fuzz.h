#pragma once

#include "base/assert.h"
#include "server/session/limits.h"
#include "server/session/page.h"

/// For the fuzzers of conversions from the wire: a request is converted, or refused with a reason.
namespace baton {

template <class Command>
void check_page(const Paged<Command>& list) {
  BATON_ASSERT(list.page.items_max >= 1 && list.page.items_max <= limits::kPageItems);
}

/// Calls `check` with a request that was converted.
template <class Converted, class Check>
void check_result(const Converted& result, const Check& check) {
  if (result.has_value()) {
    check(*result);
  } else {
    BATON_ASSERT(!result.error().text.empty());
  }
}

}  // namespace baton
