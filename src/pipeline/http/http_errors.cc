#include "pipeline/http/http_errors.h"

namespace baton::pipeline {

using flow::ErrorClass;

ErrorClass class_of_http(int status) {
  if (status == 0 || status == 502 || status == 503 || status == 504 || status == 507) {
    return ErrorClass::outage;
  }
  if (status == 429 || status == 408 || status == 425) return ErrorClass::retry;
  if (status == 401 || status == 403 || status == 404 || status == 405 || status == 407) {
    return ErrorClass::config;
  }
  // The URL has moved, for every record.
  if (status >= 300 && status < 400) return ErrorClass::config;
  if (status == 409) return ErrorClass::duplicate;
  if (status >= 400 && status < 500) return ErrorClass::poison;
  return ErrorClass::unknown;  // 500 may be caused by the record.
}

}  // namespace baton::pipeline
