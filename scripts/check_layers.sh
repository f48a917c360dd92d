#!/usr/bin/env bash
# The floors of the house (src/floors.txt): a file includes its own floor and those below it, and some words have one home. What checks
# lists includes nothing of what writes them.
# check_layers.sh [DIRECTORY]: prints every line that breaks this and exits 1.
set -euo pipefail
floors=$(sed -n 's/^\([a-z]*\):.*/\1/p' "$(dirname "$0")/../src/floors.txt" | tr '\n' ' ')
cd "${1:-$(dirname "$0")/..}"
find src kernels \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z | xargs -0 awk -v floors="${floors}main" '
  BEGIN {
    count = split(floors, order, " ")
    for (i = 1; i <= count; ++i) level[order[i]] = i
    home["MPI_[A-Z]"] = "^src/(comm|io)/"
    home["nccl[A-Z]"] = "^src/comm/"
    home["H5[A-Z]?[a-z_]"] = "^src/io/"
    home["YAML::"] = "^src/config/"
    home["cuda[A-Z_]"] = "^(kernels/cuda/|src/comm/|src/core/memory)"
    library["mpi\\.h"] = "^src/(comm|io)/"
    library["nccl"] = "^src/comm/"
    library["hdf5"] = "^src/io/"
    library["yaml-cpp/"] = "^src/config/"
    home["(pcre2|PCRE2)_[A-Za-z]"] = "^src/tokenize/"
    home["(utf8proc|UTF8PROC)_[A-Za-z]"] = "^src/tokenize/"
    home["sentencepiece::"] = "^src/tokenize/"
    library["pcre2"] = "^src/tokenize/"
    library["utf8proc"] = "^src/tokenize/"
    library["sentencepiece"] = "^src/tokenize/"
    library["cuda"] = "^(kernels/cuda/|src/comm/|src/core/memory)"
  }
  function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }
  FNR == 1 {
    split(FILENAME, part, "/")
    floor = part[1] == "kernels" ? "kernels" : part[3] == "" ? "main" : part[2]
    if (!(floor in level)) complain("src/" part[2] " is not a floor of the house (add it to src/floors.txt)")
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0
    sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    split(path, part, "/")
    inside = part[1] ~ /^(cpu|cuda|emulated)$/
    to = inside || path !~ /\// || part[1] ~ /^(operations|plans)$/ ? "kernels" : part[1]
    if (inside && floor != "kernels") complain(floor " must not reach into kernels/" part[1] " (" path "; kernels/*.h are its doors)")
    if (!(to in level)) complain("\"" path "\" is on no floor (write includes from src/ or kernels/)")
    else if (level[to] > level[floor]) complain(floor " must not include " to " (" path ")")
    if (FILENAME ~ /^src\/program\/check\// && path ~ /^program\/lists\//) complain("the checker of lists must not know how they are written (" path ")")
  }
  /^[ \t]*#[ \t]*include[ \t]*</ {
    for (name in library) if ($0 ~ ("<" name) && FILENAME !~ library[name]) complain($2 " belongs in " library[name])
    next
  }
  {
    code = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
    sub(/\/\/.*/, "", code)
    for (word in home) if (code ~ ("(^|[^A-Za-z0-9_])" word) && FILENAME !~ home[word]) complain(word " belongs in " home[word])
  }
  END { exit bad }
'
