#include "paths.h"

namespace baton::paths {

constinit const char* const kBinary = BATON_BINARY;
constinit const char* const kTools = BATON_TOOLS;
constinit const char* const kTests = BATON_TESTS;

}  // namespace baton::paths
