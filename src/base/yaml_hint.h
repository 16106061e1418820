#pragma once

#include <string>
#include <string_view>

namespace baton {

/// yaml-cpp's message about a document, made clearer where people stumble: over a tab, and over a
/// value that needs quotes. `line` counts from 1. Pure.
std::string explain_yaml(std::string_view text, int line, std::string_view problem);

}  // namespace baton
