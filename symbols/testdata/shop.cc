// C++ names: overloads, a template, an operator, and a throw.
#include <stdexcept>
namespace shop {
__attribute__((noinline)) int price(int n) {
	if (n > 100) throw std::runtime_error("too dear");
	return n * 2;
}
__attribute__((noinline)) int price(const char *s) { return s[0]; }
template <typename T> __attribute__((noinline)) T twice(T v) { return v + v; }
struct Basket {
	int n;
	__attribute__((noinline)) int addItem(int i) { return n += i; }
	__attribute__((noinline)) int operator()(int i) { return n -= i; }
};
}
int main(int argc, char **argv) {
	shop::Basket b{argc};
	return shop::price(argc) + shop::price(argv[0]) + shop::twice(argc) + shop::twice(2.5) + b.addItem(1) + b(2) > 1000;
}
