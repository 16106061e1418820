// Tests of stores whose servers are not installed are skipped, each on its own. This one makes that
// visible in the summary of the whole run.

#include "stores/programs.h"

#include <gtest/gtest.h>

namespace baton::stores {
namespace {

TEST(Programs, EveryServerThatTheTestsNeedIsHere) {
  for (const Program& program :
       {etcd_program(), debian_nats_program(), nats_program(coord::NatsVersion{2, 12, 3})}) {
    if (!program.missing.empty()) GTEST_SKIP() << "SKIPPED: " << program.missing;
  }
}

}  // namespace
}  // namespace baton::stores
