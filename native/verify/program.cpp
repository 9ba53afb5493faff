#include "verify/program.h"

#include <set>
#include <string>
#include <string_view>

#include "core/text.h"
#include "verify/flat_table.h"
#include "verify/method.h"
#include "verify/parts.h"

namespace executorch_tensorrt {
namespace {

enum ProgramField { kMethods = 1 };
enum MethodField { kName = 0 };

void verify(const ProgramParts& parts) {
  const FlatTables methods = parts.program().tables(kMethods);
  std::set<std::string_view> names;
  for (std::size_t k = 0; k < methods.size(); ++k) {
    const std::string_view name = methods[k].text(kName);
    require(!name.empty() && name.find('\0') == std::string_view::npos, "a method has no name");
    require(names.insert(name).second, "two methods have one name");
    try {
      verify_method(methods[k], parts);
    } catch (const Damage& damage) {
      throw Damage("method " + quoted(name) + ": " + damage.what());
    }
  }
}

}  // namespace

Status verify_program(const void* data, std::size_t size) {
  try {
    verify(ProgramParts(data, size));
  } catch (const Damage& damage) {
    return invalid_program(damage.what());
  }
  return {};
}

}  // namespace executorch_tensorrt
