// A client for the counter service. No dependencies: fetch is enough.

export interface CounterOptions {
  /** Reported as over when the value is larger than this. */
  limit?: number;
  baseUrl?: string;
}

export type Answer = { value: number } | { error: string; message: string };

const DEFAULT_URL = "https://counters.example.org";
const RETRIES = 3;

export class CounterError extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
    this.name = "CounterError";
  }
}

export class Counter {
  private readonly url: string;

  constructor(readonly name: string, private readonly options: CounterOptions = {}) {
    if (!/^[a-z][a-z0-9-]*$/.test(name)) {
      throw new CounterError("name", `${name} is not a name of a counter`);
    }
    this.url = `${options.baseUrl ?? DEFAULT_URL}/counters/${name}`;
  }

  async read(): Promise<number> {
    return this.call("GET");
  }

  async add(amount: number): Promise<number> {
    return this.call("POST", { amount });
  }

  async over(): Promise<boolean> {
    const { limit } = this.options;
    return limit !== undefined && (await this.read()) > limit;
  }

  private async call(method: string, body?: unknown): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(this.url, {
        method,
        headers: { "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      if (response.status >= 500 && attempt < RETRIES) {
        await pause(2 ** attempt * 100);
        continue;
      }
      const answer = (await response.json()) as Answer;
      if ("error" in answer) {
        throw new CounterError(answer.error, answer.message);
      }
      return answer.value;
    }
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

export const total = async (counters: Counter[]): Promise<number> => {
  const values = await Promise.all(counters.map((counter) => counter.read()));
  return values.reduce((sum, value) => sum + value, 0);
};
