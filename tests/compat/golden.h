#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

/// Golden bytes: a file with a name and hex digits on each line. Lines never change; BATON_RECORD=1
/// appends those that are missing.
namespace baton::golden {

using Samples = std::map<std::string, std::string>;

inline std::string to_hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<std::uint8_t>(byte) >> 4U];
    text += kDigits[static_cast<std::uint8_t>(byte) & 15U];
  }
  return text;
}

inline std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

inline Samples read(const std::string& path) {
  Samples all;
  std::ifstream file(path);
  std::string name;
  std::string hex;
  while (file >> name >> hex) all[name] = from_hex(hex);
  return all;
}

/// If asked to, appends the samples of `today` that the file lacks.
inline void record_missing(const std::string& path, const Samples& today) {
  if (std::getenv("BATON_RECORD") == nullptr) return;
  const Samples known = read(path);
  std::ofstream file(path, std::ios::app);
  for (const auto& [name, bytes] : today) {
    if (!known.contains(name)) file << name << ' ' << to_hex(bytes) << '\n';
  }
}

}  // namespace baton::golden
