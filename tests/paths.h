#pragma once

namespace baton::paths {

/// Where this checkout keeps what the tests use. Absolute, and in one object file: a path in every
/// compile command would keep ccache from sharing the tests' objects between two checkouts.
extern const char* const kBinary;  // The `baton` program built beside the tests.
extern const char* const kTools;   // Servers that `./dev setup` builds or fetches.
extern const char* const kTests;   // The folder tests/ of the sources.

}  // namespace baton::paths
