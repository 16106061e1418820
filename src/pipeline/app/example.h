#pragma once

#include <string>

namespace baton::pipeline {

/// The commented config of the shipped example: orders from a Baton stream of the broker at
/// `address` into SQLite.
std::string example_config(const std::string& name, const std::string& address = "127.0.0.1:7470");

/// A schema file of this name means the built-in schema of orders; no file is read.
inline constexpr const char* kOrderSchema = "builtin:orders";

}  // namespace baton::pipeline
