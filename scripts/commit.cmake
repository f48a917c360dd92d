# Writes FILE, which names the commit of SOURCE, unless it says so already.
execute_process(COMMAND git describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
set(text "#include \"app/run/version.h\"\n\nnamespace mindpipe {\nconst char* const commit = \"${commit}\";\n}\n")
set(old "")
if(EXISTS ${FILE})
  file(READ ${FILE} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${FILE} "${text}")
endif()
