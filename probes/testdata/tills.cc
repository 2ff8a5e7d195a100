// Overloads, members, templates: each says how often it was called.
#include <cstdio>

static int calls[8];

#define COUNT(i) do { calls[i]++; __asm__ volatile("" ::: "memory"); } while (0)
#define OWN __attribute__((noinline, noclone))

namespace shop {
OWN int price(int n) { COUNT(0); return n * 2; }
OWN int price(const char *s) { COUNT(1); return s[0]; }
template <typename T> OWN T twice(T v) { COUNT(sizeof v == 4 ? 2 : 3); return v + v; }
struct Basket {
	int n;
	OWN explicit Basket(int i) : n(i) { COUNT(7); }
	OWN int add(int i) { COUNT(4); return n += i; }
	OWN int add(int i) const { COUNT(5); return n + i; }
	OWN int operator()(int i) { COUNT(6); return n -= i; }
};
}

int main()
{
	static const char *names[] = {"int", "text", "twice<int>", "twice<double>", "add", "const", "call", "new"};
	double sum = 0;

	for (int i = 0; i < 70; i++) {
		shop::Basket basket(i);
		const shop::Basket &same = basket;

		sum += shop::price(i) + shop::twice(i) + basket.add(i) + same.add(i);
		if (i % 2)
			sum += shop::price("x") + basket(i);
		if (i % 7 == 0)
			sum += shop::twice(0.5);
	}
	for (int i = 0; i < 8; i++)
		std::printf("%s %d\n", names[i], calls[i]);
	return sum == 1;
}
