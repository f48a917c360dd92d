#pragma once
#include <functional>
#include <map>

#include "cpu/cpu_backend.h"
