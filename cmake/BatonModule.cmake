# baton_module(<layer> [DEPS <layers...>] [LIBS <third-party targets...>] [TEST_DEPS <layers...>])
#
# Declares the layer src/<layer>, "group/layer" or a group that is a layer itself. With <name> for it, "/" replaced by "_":
#   baton_<name>            a static library of its *.cc
#   <name>_tests            its *_test.cc, with gtest and rapidcheck, run by ctest
#   <name>_<x>_fuzz         each x_fuzz.cc: a libFuzzer program under the fuzz preset, otherwise one that
#                           replays corpus/<x>/ in ctest
#   <name>_<x>_bench        each x_bench.cc, with Google benchmark
#   <name>_linkcheck        proves that the layer calls nothing beyond DEPS and LIBS
# TEST_DEPS are seen by tests, fuzzers and benchmarks only. A layer without sources is an INTERFACE library.
# fmt is everybody's.

# Every test that needs no running broker.
add_custom_target(unit)
# Of these, the layers that decide and decode, which compile fast: `./dev check` runs them under the
# sanitizers. `./dev test --long` does so with everything.
add_custom_target(core)
set(BATON_CORE base "core/.*" cluster/loglet storage/disk storage/journal storage/log pipeline/flow pipeline/schema
               pipeline/engine sim)
list(JOIN BATON_CORE "|" BATON_CORE)

function(baton_module layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;LIBS;TEST_DEPS")
  string(REPLACE "/" "_" name ${layer})
  string(REPLACE "/" "_" arg_DEPS "${arg_DEPS}")
  string(REPLACE "/" "_" arg_TEST_DEPS "${arg_TEST_DEPS}")
  set(here ${CMAKE_CURRENT_SOURCE_DIR})
  file(GLOB sources CONFIGURE_DEPENDS ${here}/*.cc)
  file(GLOB headers CONFIGURE_DEPENDS ${here}/*.h)
  set(tests ${sources})
  set(fuzzers ${sources})
  set(benches ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|_bench|/main)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")

  list(TRANSFORM arg_DEPS PREPEND baton_ OUTPUT_VARIABLE dep_libraries)
  list(TRANSFORM arg_TEST_DEPS PREPEND baton_ OUTPUT_VARIABLE test_libraries)
  if(sources)
    if(BATON_UNITY)
      baton_together(compiled ${layer} ${sources})
    else()
      set(compiled ${sources})
    endif()
    add_library(baton_${name} STATIC ${compiled} ${headers})
    target_include_directories(baton_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src
                                                    ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(baton_${name} PUBLIC ${dep_libraries} ${arg_LIBS} fmt::fmt
                                        PRIVATE baton_warnings)
    baton_linkcheck(${name} DEPS ${arg_DEPS} LIBS ${arg_LIBS})
  else()
    add_library(baton_${name} INTERFACE)
    target_include_directories(baton_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src
                                                       ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(baton_${name} INTERFACE ${dep_libraries} ${arg_LIBS} fmt::fmt)
  endif()

  if(tests AND BATON_TESTS AND NOT BATON_FUZZ)
    if(name STREQUAL "sim")
      baton_test(${name}_tests sim ${tests})
    else()
      baton_test(${name}_tests unit ${tests})
    endif()
    target_link_libraries(${name}_tests PRIVATE baton_${name} ${test_libraries})
    baton_core(${layer} ${name}_tests)
  endif()
  if(NOT BATON_TESTS AND NOT BATON_FUZZ)
    set(fuzzers)
  endif()
  foreach(source ${fuzzers})
    baton_fuzzer(${name} ${source})
    target_link_libraries(${fuzzer} PRIVATE baton_${name} ${test_libraries})
    if(NOT BATON_FUZZ)
      baton_core(${layer} ${fuzzer})
    endif()
  endforeach()
  if(BATON_TESTS AND NOT BATON_FUZZ AND NOT BATON_SANITIZE)
    foreach(source ${benches})
      cmake_path(GET source STEM stem)
      add_executable(${name}_${stem} ${source})
      target_link_libraries(${name}_${stem} PRIVATE baton_${name} ${test_libraries} baton_warnings
                                                    benchmark::benchmark benchmark::benchmark_main)
    endforeach()
  endif()
endfunction()

# baton_together(<variable> <layer> <sources...>): files that include up to 8 of the sources each. CMake's own unity builds
# have absolute paths in them, so two checkouts would share nothing in ccache.
function(baton_together variable layer)
  set(result)
  set(text)
  set(count 0)
  foreach(source ${ARGN})
    cmake_path(GET source FILENAME file)
    string(APPEND text "#include \"${layer}/${file}\"\n")
    math(EXPR count "${count} + 1")
    math(EXPR rest "${count} % 8")
    list(LENGTH ARGN all)
    if(rest EQUAL 0 OR count EQUAL all)
      list(LENGTH result number)
      set(together ${CMAKE_CURRENT_BINARY_DIR}/together_${number}.cc)
      file(CONFIGURE OUTPUT ${together} CONTENT "${text}" @ONLY)
      list(APPEND result ${together})
      set(text)
    endif()
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()

# baton_core(<layer> <test>): adds the test to `core`, if its layer belongs there.
function(baton_core layer test)
  if(layer MATCHES "^(${BATON_CORE})$")
    add_dependencies(core ${test})
    set_property(TEST ${test} APPEND PROPERTY LABELS core)
  endif()
endfunction()

# baton_test(<target> <label> <sources...>): a gtest program that ctest runs as one test.
function(baton_test target label)
  add_executable(${target} ${ARGN})
  # Only where it is used: an absolute path keeps ccache from sharing objects between two checkouts.
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/testdata)
    target_compile_definitions(${target} PRIVATE
      BATON_TESTDATA="${CMAKE_CURRENT_SOURCE_DIR}/testdata")
  endif()
  target_compile_options(${target} PRIVATE -O0)  # A quarter of the time to compile; what they test is optimized.
  target_link_libraries(${target} PRIVATE baton_warnings GTest::gtest GTest::gtest_main
                                          rapidcheck rapidcheck_gtest Threads::Threads)
  add_test(NAME ${target} COMMAND ${target} --gtest_brief=1
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(timeout 600)
  if(BATON_SANITIZE)
    set(timeout 1500)  # The exhaustive searches are some five times slower under a sanitizer.
  endif()
  set_tests_properties(${target} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
  if(NOT label STREQUAL "e2e")
    add_dependencies(unit ${target})
  endif()
endfunction()

# Sets `fuzzer` in the caller to the target made from x_fuzz.cc.
function(baton_fuzzer name source)
  cmake_path(GET source STEM stem)
  string(REGEX REPLACE "_fuzz$" "" short ${stem})
  set(target ${name}_${stem})
  set(fuzzer ${target} PARENT_SCOPE)
  if(BATON_FUZZ)
    add_executable(${target} ${source})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${target} ${source} ${CMAKE_SOURCE_DIR}/tools/fuzz_replay.cc)
    add_test(NAME ${target} COMMAND ${target} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${short})
    set_tests_properties(${target} PROPERTIES LABELS fuzz TIMEOUT 300)
    add_dependencies(unit ${target})
  endif()
  target_link_libraries(${target} PRIVATE baton_warnings)
endfunction()

# baton_linkcheck(<name> DEPS <layers...> LIBS <targets...>): links all of baton_<name> into a
# shared library against the link checks of DEPS, and LIBS, alone. Those are shared and linked
# privately, so a call into a layer that is not declared, even one that a declared layer uses, is an
# undefined symbol. The result is the same under every compiler, so the sanitizers' builds leave it
# out.
function(baton_linkcheck name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;LIBS")
  if(BATON_FUZZ OR BATON_SANITIZE)
    return()
  endif()
  add_library(${name}_linkcheck SHARED ${CMAKE_SOURCE_DIR}/cmake/linkcheck.cc)
  set_target_properties(${name}_linkcheck PROPERTIES LINK_DEPENDS $<TARGET_FILE:baton_${name}>)
  add_dependencies(${name}_linkcheck baton_${name})
  target_link_options(${name}_linkcheck PRIVATE
    -Wl,--no-undefined -Wl,--no-copy-dt-needed-entries
    -Wl,--whole-archive $<TARGET_FILE:baton_${name}> -Wl,--no-whole-archive)
  foreach(dep ${arg_DEPS})
    if(TARGET ${dep}_linkcheck)
      target_link_libraries(${name}_linkcheck PRIVATE ${dep}_linkcheck)
    endif()
  endforeach()
  target_link_libraries(${name}_linkcheck PRIVATE ${arg_LIBS} fmt::fmt)
endfunction()
