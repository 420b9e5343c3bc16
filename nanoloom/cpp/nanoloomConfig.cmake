# find_package(nanoloom CONFIG): models as libraries of a C or C++ project.
#
#   find_package(nanoloom CONFIG REQUIRED)      # cmake -Dnanoloom_DIR=$(nanoloom --cmake-dir)
#   nanoloom_add_model(minilm minilm.onnx OPTIONS --dim batch=1..64)
#   target_link_libraries(search PRIVATE minilm)   # minilm.h and nanoloom.hpp are found
#
# The model is compiled when the project is built, and again when its file changes.
# NANOLOOM_EXECUTABLE: the command, by default that of the environment which this folder
# lies in, else the first on the path.

include_guard(GLOBAL)
cmake_minimum_required(VERSION 3.16)

set(NANOLOOM_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}")
find_program(NANOLOOM_EXECUTABLE nanoloom
             HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../../../bin" DOC "the command nanoloom")
if(NOT NANOLOOM_EXECUTABLE)
  set(nanoloom_FOUND FALSE)
  set(nanoloom_NOT_FOUND_MESSAGE
      "the command nanoloom is not on the path: set NANOLOOM_EXECUTABLE to it")
  return()
endif()

# nanoloom_add_model(TARGET MODEL [NAME name] [STATIC] [DEPENDS file...] [OPTIONS option...])
#
# NAME: of the header and of the functions, TARGET by default.  STATIC: an archive, no
# shared library.  DEPENDS: files beside the model, such as its external data; MODEL.data
# is found.  OPTIONS: of `nanoloom compile`.
function(nanoloom_add_model target model)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "STATIC" "NAME" "OPTIONS;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "nanoloom_add_model: what is ${ARG_UNPARSED_ARGUMENTS}?")
  endif()
  get_filename_component(model "${model}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${model}")
    message(FATAL_ERROR "nanoloom_add_model: there is no ${model}")
  endif()
  if(EXISTS "${model}.data")
    list(APPEND ARG_DEPENDS "${model}.data")
  endif()
  if(NOT ARG_NAME)
    set(ARG_NAME "${target}")
  endif()
  set(kind SHARED)
  set(suffix so)
  if(ARG_STATIC)
    set(kind STATIC)
    set(suffix a)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/nanoloom/${target}")
  set(library "${folder}/${ARG_NAME}.${suffix}")
  set(header "${folder}/${ARG_NAME}.h")
  file(MAKE_DIRECTORY "${folder}") # an include directory exists when CMake runs
  add_custom_command(
    OUTPUT "${library}" "${header}"
    COMMAND "${NANOLOOM_EXECUTABLE}" compile "${model}" --name "${ARG_NAME}"
            ${ARG_OPTIONS} -o "${library}"
    DEPENDS "${model}" ${ARG_DEPENDS}
    COMMENT "Compiling ${model}"
    VERBATIM)
  add_custom_target("${target}-compiled" DEPENDS "${library}" "${header}")
  add_library("${target}" ${kind} IMPORTED GLOBAL)
  add_dependencies("${target}" "${target}-compiled")
  set_target_properties(
    "${target}" PROPERTIES IMPORTED_LOCATION "${library}"
                           INTERFACE_INCLUDE_DIRECTORIES "${folder};${NANOLOOM_INCLUDE_DIR}")
  if(ARG_STATIC)
    find_package(Threads REQUIRED)
    set_property(TARGET "${target}" PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads m)
  endif()
endfunction()
