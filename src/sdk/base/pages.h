#pragma once

#include <utility>

#include "base/result.h"
#include "sdk/base/errors.h"

namespace baton::client {

/// Asks for page after page, and hands each one to `take`, until the last one or an error. `call`
/// makes one call: a request in, a Result of the response out.
template <class Request, class Call, class Take>
Status walk_pages(Request request, const Call& call, const Take& take) {
  while (true) {
    BATON_TRY(auto page, call(std::as_const(request)));
    take(std::as_const(page));
    if (page.next_page_token().empty()) return {};
    // A broker that sends the same page again would keep us here for ever.
    if (page.next_page_token() == request.page_token()) {
      return Error{Errc::internal, "the broker gave the same page_token twice"};
    }
    request.set_page_token(page.next_page_token());
  }
}

}  // namespace baton::client
