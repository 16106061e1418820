#include "pipeline/orders/order_text.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace baton::orders {
namespace {

using enum FieldKind;

constexpr auto kOrder = std::to_array<OrderField>({{"order_uid", text},
                                                   {"track_number", text},
                                                   {"entry", text},
                                                   {"delivery", object},
                                                   {"payment", object},
                                                   {"items", list},
                                                   {"locale", text},
                                                   {"internal_signature", optional},
                                                   {"customer_id", text},
                                                   {"delivery_service", text},
                                                   {"shardkey", text},
                                                   {"sm_id", positive},
                                                   {"date_created", timestamp},
                                                   {"oof_shard", text}});
constexpr auto kDelivery = std::to_array<OrderField>({{"name", text},
                                                      {"phone", phone},
                                                      {"zip", text},
                                                      {"city", text},
                                                      {"address", text},
                                                      {"region", text},
                                                      {"email", email}});
constexpr auto kPayment = std::to_array<OrderField>({{"transaction", text},
                                                     {"request_id", optional},
                                                     {"currency", currency},
                                                     {"provider", text},
                                                     {"amount", amount},
                                                     {"payment_dt", positive},
                                                     {"bank", text},
                                                     {"delivery_cost", amount},
                                                     {"goods_total", positive},
                                                     {"custom_fee", amount}});
constexpr auto kItem = std::to_array<OrderField>({{"chrt_id", positive},
                                                  {"track_number", text},
                                                  {"price", amount},
                                                  {"rid", text},
                                                  {"name", text},
                                                  {"sale", percent},
                                                  {"size", text},
                                                  {"total_price", amount},
                                                  {"nm_id", positive},
                                                  {"brand", text},
                                                  {"status", integer}});

// In JSON's form: some with escapes, some in other scripts.
constexpr auto kPeople = std::to_array<std::string_view>(
    {"Test Testov", "Anna Kowalska", "Jos\\u00e9 Garc\\u00eda", "Мария Иванова", "Li Wei",
     "Se\\u00e1n O'Brien", "Ren\\\"e\\\" M\u00fcller", "\u7530\u4e2d\u592a\u90ce", "Fatima Zahra",
     "John Smith"});
constexpr auto kCities = std::to_array<std::string_view>(
    {"Kiryat Mozkin", "Z\u00fcrich", "\u0141\u00f3d\u017a", "Санкт-Петербург", "S\u00e3o Paulo",
     "Berlin", "Tel Aviv", "Osaka"});
constexpr auto kStreets = std::to_array<std::string_view>(
    {"Ploshad Mira", "Bahnhofstrasse", "Piotrkowska", "Main Street", "Rua Augusta", "Невский пр.",
     "Unter den Linden", "Dizengoff \\/ Gordon"});
constexpr auto kRegions =
    std::to_array<std::string_view>({"Kraiot", "Z\u00fcrich", "Mazowsze", "SP", "Kansai", "BE"});
constexpr auto kDomains =
    std::to_array<std::string_view>({"gmail.com", "example.org", "mail.example.com", "post.test"});
constexpr auto kCurrencies =
    std::to_array<std::string_view>({"USD", "EUR", "RUB", "PLN", "CHF", "JPY", "BRL", "ILS"});
constexpr auto kProviders = std::to_array<std::string_view>({"wbpay", "stripe", "paypal", "adyen"});
constexpr auto kBanks = std::to_array<std::string_view>({"alpha", "sber", "revolut", "ubs"});
constexpr auto kLocales = std::to_array<std::string_view>({"en", "de", "ru", "pl", "he", "ja"});
constexpr auto kServices = std::to_array<std::string_view>({"meest", "dhl", "ups", "post"});
constexpr auto kGoods = std::to_array<std::string_view>(
    {"Mascaras", "Running shoes", "USB-C cable 2 m", "Caf\u00e9 cr\u00e8me", "Notebook A5, dotted",
     "Чайник", "13\\\" sleeve", "T-shirt"});
constexpr auto kBrands = std::to_array<std::string_view>(
    {"Vivienne Sabo", "Nike", "Anker", "Nespresso", "Leuchtturm1917", "Bosch", "Uniqlo"});
constexpr auto kSizes = std::to_array<std::string_view>({"0", "S", "M", "L", "XL", "42"});

template <std::size_t N>
std::string_view pick(const std::array<std::string_view, N>& words, Random& random) {
  return words.at(random.below(N));
}

struct Item {
  std::uint64_t price;
  std::uint64_t sale;
  std::uint64_t total_price;
};

/// Writes one order, member after member.
class Writer {
 public:
  Writer(std::string_view order_uid, Random& random, const FieldChange* change)
      : order_uid_(order_uid), random_(random), change_(change) {
    const std::size_t count = 1 + random_.below(5);
    for (std::size_t i = 0; i < count; ++i) {
      // Never 0: the total must be more than 0.
      const std::uint64_t price = 100 + random_.below(100'000);
      const std::uint64_t sale = random_.below(100);
      items_.push_back({price, sale, price * (100 - sale) / 100});
      goods_total_ += items_.back().total_price;
    }
    delivery_cost_ = random_.below(3000);
    track_number_ = fmt::format("WB{:010}", random_.below(10'000'000'000));
    out_.reserve(2048);
  }

  std::string run() {
    write_object(OrderObject::order, [this](const OrderField& field) { write_order_value(field); });
    return std::move(out_);
  }

 private:
  template <class WriteValue>
  void write_object(OrderObject object, WriteValue write_value) {
    out_ += '{';
    bool first = true;
    for (const OrderField& field : fields_of(object)) {
      const bool changed = hits(object) && change_->field == field.name;
      if (changed && change_->json.empty()) continue;
      // Half of the optional fields are left out.
      if (!changed && field.kind == optional && random_.chance(1, 2)) continue;
      write_name(field.name, first);
      if (changed) {
        out_ += change_->json;
      } else {
        write_value(field);
      }
    }
    if (hits(object) && change_->field.empty()) {
      write_name(kUnknownField, first);
      out_ += "true";
    }
    out_ += '}';
  }

  void write_name(std::string_view name, bool& first) {
    if (!std::exchange(first, false)) out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }

  void write_order_value(const OrderField& field) {
    const std::string_view name = field.name;
    if (name == "delivery") return write_delivery();
    if (name == "payment") return write_payment();
    if (field.kind == list) return write_items();
    if (name == "order_uid") return quoted(order_uid_);
    if (name == "track_number") return quoted(track_number_);
    if (name == "entry") return quoted("WBIL");
    if (name == "locale") return quoted(pick(kLocales, random_));
    if (name == "internal_signature") return quoted("");
    if (name == "customer_id") return write("\"customer-{}\"", random_.below(1'000'000));
    if (name == "delivery_service") return quoted(pick(kServices, random_));
    if (name == "shardkey") return write("\"{}\"", random_.below(10));
    if (name == "sm_id") return write("{}", 1 + random_.below(1000));
    if (name == "date_created") return write_timestamp();
    write("\"{}\"", 1 + random_.below(4));  // oof_shard
  }

  void write_delivery() {
    write_object(OrderObject::delivery,
                 [this](const OrderField& field) { write_delivery_value(field.name); });
  }

  void write_delivery_value(std::string_view name) {
    if (name == "name") return quoted(pick(kPeople, random_));
    if (name == "phone") return write("\"+{}\"", 1'000'000'000 + random_.below(9'000'000'000));
    if (name == "zip") return write("\"{:07}\"", random_.below(10'000'000));
    if (name == "city") return quoted(pick(kCities, random_));
    if (name == "address") {
      // One draw per statement: compilers differ in the order of evaluation of arguments.
      const std::string_view street = pick(kStreets, random_);
      return write("\"{} {}\"", street, 1 + random_.below(200));
    }
    if (name == "region") return quoted(pick(kRegions, random_));
    const std::string_view domain = pick(kDomains, random_);
    write("\"user{}@{}\"", random_.below(1'000'000), domain);  // email
  }

  void write_payment() {
    write_object(OrderObject::payment,
                 [this](const OrderField& field) { write_payment_value(field.name); });
  }

  void write_payment_value(std::string_view name) {
    if (name == "transaction") return quoted(order_uid_);
    if (name == "request_id") return write("\"req-{}\"", random_.below(1'000'000));
    if (name == "currency") return quoted(pick(kCurrencies, random_));
    if (name == "provider") return quoted(pick(kProviders, random_));
    if (name == "amount") return write("{}", goods_total_ + delivery_cost_);
    if (name == "payment_dt") return write("{}", 1'600'000'000 + random_.below(150'000'000));
    if (name == "bank") return quoted(pick(kBanks, random_));
    if (name == "delivery_cost") return write("{}", delivery_cost_);
    if (name == "goods_total") return write("{}", goods_total_);
    write("0");  // custom_fee
  }

  void write_items() {
    out_ += '[';
    for (item_ = 0; item_ < items_.size(); ++item_) {
      if (item_ > 0) out_ += ',';
      write_object(OrderObject::item,
                   [this](const OrderField& field) { write_item_value(field.name); });
    }
    out_ += ']';
  }

  void write_item_value(std::string_view name) {
    const Item& item = items_[item_];
    if (name == "chrt_id") return write("{}", 1 + random_.below(10'000'000));
    if (name == "track_number") return quoted(track_number_);
    if (name == "price") return write("{}", item.price);
    if (name == "rid") return write("\"{:016x}test\"", random_.next());
    if (name == "name") return quoted(pick(kGoods, random_));
    if (name == "sale") return write("{}", item.sale);
    if (name == "size") return quoted(pick(kSizes, random_));
    if (name == "total_price") return write("{}", item.total_price);
    if (name == "nm_id") return write("{}", 1 + random_.below(100'000'000));
    if (name == "brand") return quoted(pick(kBrands, random_));
    write("{}", 200 + random_.below(5));  // status
  }

  void write_timestamp() {
    const std::uint64_t year = 2020 + random_.below(6);
    const std::uint64_t month = 1 + random_.below(12);
    const std::uint64_t day = 1 + random_.below(28);
    const std::uint64_t second = random_.below(std::uint64_t{24} * 60 * 60);
    write("\"{}-{:02}-{:02}T{:02}:{:02}:{:02}Z\"", year, month, day, second / 3600,
          second / 60 % 60, second % 60);
  }

  /// A word that needs no escaping, or is already escaped.
  void quoted(std::string_view word) {
    out_ += '"';
    out_ += word;
    out_ += '"';
  }
  template <class... Args>
  void write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  [[nodiscard]] bool hits(OrderObject object) const {
    return change_ != nullptr && change_->object == object &&
           (object != OrderObject::item || item_ == 0);
  }

  std::string_view order_uid_;
  Random& random_;
  const FieldChange* change_;
  std::vector<Item> items_;
  std::size_t item_ = 0;
  std::uint64_t goods_total_ = 0;
  std::uint64_t delivery_cost_ = 0;
  std::string track_number_;
  std::string out_;
};

}  // namespace

std::span<const OrderField> fields_of(OrderObject object) {
  switch (object) {
    case OrderObject::order: return kOrder;
    case OrderObject::delivery: return kDelivery;
    case OrderObject::payment: return kPayment;
    case OrderObject::item: return kItem;
  }
  return {};
}

std::string_view path_of(OrderObject object) {
  constexpr std::array<std::string_view, 4> kPaths = {"", "delivery.", "payment.", "items[]."};
  return kPaths.at(std::to_underlying(object));
}

std::string_view pointer_of(OrderObject object) {
  constexpr std::array<std::string_view, 4> kPointers = {"", "/delivery", "/payment", "/items/0"};
  return kPointers.at(std::to_underlying(object));
}

std::string write_order(std::string_view order_uid, Random& random, const FieldChange* change) {
  if (change != nullptr && change->field == kWholeOrder) return std::string(change->json);
  return Writer(order_uid, random, change).run();
}

}  // namespace baton::orders
