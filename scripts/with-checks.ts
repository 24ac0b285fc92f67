// Makes what an example claims in a comment behind an expression a check.

import ts from 'typescript';

/** `expression; // value` becomes a check, where the value is a literal; text behind it explains. */
export function withChecks(code: string): string {
  const lines = code.split('\n').map((line) => {
    const [, expression, value] =
      /^(?!const |let |await |\/\/|\})(.+); \/\/ ('[^']*'|-?[\d.]+n?|0x[\da-f]+n?|true|false|\[[^\].]*\])(?:[:,]|$)/.exec(
        line,
      ) ?? [];
    return expression === undefined ? line : `expect(${expression}).toEqual(${value});`;
  });
  const { outputText } = ts.transpileModule(lines.join('\n'), {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  });
  return outputText;
}
