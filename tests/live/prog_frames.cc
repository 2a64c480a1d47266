/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prog_frames: runs C++ code until it is killed: exceptions, callbacks, virtual calls, threads. */
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile unsigned long sink;

struct shape {
	virtual ~shape()
	{
		sink = sink + 1;
	}
	virtual double area(int depth) const = 0;
};

struct square : shape {
	double side = 2;
	double area(int depth) const override
	{
		return depth ? area(depth - 1) + side : side * side;
	}
};

struct guard {
	~guard()
	{
		usleep(200);
	}
};

static int thrower(int n)
{
	guard g;

	if (n == 0)
		throw std::runtime_error("at the bottom " + std::to_string(sink));
	return thrower(n - 1) + 1;
}

static int catcher(int n)
{
	try {
		return thrower(n);
	} catch (const std::exception &e) {
		sink = sink + std::string(e.what()).size();
		return 0;
	}
}

static void sorter(std::size_t n)
{
	std::vector<std::string> words;

	for (std::size_t i = 0; i < n; i++)
		words.push_back(std::to_string(i * 7919 % n));
	std::sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) {
		if (a == "17")
			usleep(50);
		return a < b;
	});
	sink = sink + words.front().size();
}

static void mapper(int n)
{
	std::map<int, std::unique_ptr<shape>> shapes;
	std::function<double(int)> sum = [&](int i) -> double {
		return i ? sum(i - 1) + shapes[i]->area(i % 5) : 0;
	};

	for (int i = 0; i <= n; i++)
		shapes[i] = std::make_unique<square>();
	sink = sink + (unsigned long)sum(n);
}

static void work()
{
	for (;;) {
		sorter(300);
		mapper(40);
		catcher(6);
		usleep(500);
	}
}

int main()
{
	std::thread other(work);

	std::printf("ready\n");
	std::fflush(stdout);
	work();
}
