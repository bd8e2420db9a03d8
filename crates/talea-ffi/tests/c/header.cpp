// The header in C++: a small binding.

#include "talea.h"

#include <string>

int main() {
    if (talea_abi_version() != TALEA_ABI_VERSION)
        return 1;
    const talea_registry *registry = nullptr;
    talea_status status = talea_open(nullptr, &registry, nullptr, 0);
    if (status != TALEA_STATUS_OK)
        return 2;
    talea_text label = talea_text_of("method");
    talea_family_options options{};
    options.size = sizeof options;
    options.kind = TALEA_KIND_COUNTER;
    options.name = talea_text_of("orders");
    options.help = talea_text_of("Orders accepted.");
    options.label_names = &label;
    options.label_count = 1;
    char message[256];
    const talea_family *orders = nullptr;
    if (talea_register(registry, &options, &orders, message, sizeof message) != TALEA_STATUS_OK)
        return 3;
    const std::string method = "card";
    const talea_text value{method.data(), method.size()};
    if (talea_record(orders, &value, 1, TALEA_OPERATION_ADD, talea_unsigned(2)) != TALEA_STATUS_OK)
        return 4;
    std::string page;
    talea_rendering *rendering = nullptr;
    talea_text piece{nullptr, 0};
    if (talea_render_begin(registry, piece, &rendering) != TALEA_STATUS_OK)
        return 5;
    while (talea_render_next(rendering, &piece) == TALEA_STATUS_OK && piece.len > 0)
        page.append(piece.data, piece.len);
    talea_render_end(rendering);
    return page.find("orders_total{method=\"card\"} 2\n") == std::string::npos ? 6 : 0;
}
