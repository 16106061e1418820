#pragma once

#include <string_view>

#include <baton/broker.h>

#include "cli/base/command.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"

namespace baton::cli {

/// Runs `use` with a broker; fails as `what` if the flags name none.
template <class Use>
ExitCode with_broker(const ClientFlags& flags, std::string_view what, Use use) {
  const Output out = flags.output();
  const auto broker = client::Broker::open(flags.connection());
  if (!broker) return out.fail(what, broker.error());
  return use(*broker, out);
}

}  // namespace baton::cli
