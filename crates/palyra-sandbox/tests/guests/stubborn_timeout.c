/* Ignores every signal it can, keeps its output open and never ends; so do its children. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  for (int number = 1; number < 65; number++) signal(number, SIG_IGN);
  puts("waiting");
  fflush(stdout);
  fork();
  fork();
  for (;;) pause();
}
