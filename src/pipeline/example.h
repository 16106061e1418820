#pragma once

#include <string>

namespace baton::pipeline {

/// The commented config of the shipped example: orders from a Baton stream into SQLite.
std::string example_config(const std::string& name);

/// A schema file of this name is the shipped one of orders, and needs no file.
inline constexpr const char* kOrderSchema = "builtin:orders";

}  // namespace baton::pipeline
